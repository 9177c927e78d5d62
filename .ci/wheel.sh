#!/usr/bin/env sh
# Builds the wheel for this platform, installs it into a fresh environment, and goes the demo's road from there on a small
# network, with no compiler within reach.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
built=build/wheel
rm -rf "$built"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$built" .
wheel=$(ls "$built"/*.whl)
echo "$(basename "$wheel"): $(wc -c < "$wheel") bytes"
test "$(wc -c < "$wheel")" -lt 4000000
"$python" -m venv "$built/environment"
PATH=/nowhere CC=false CXX=false "$built/environment/bin/python" -m pip install --quiet --disable-pip-version-check \
  -c constraints.txt "$wheel[runtime]"
"$built/environment/bin/python" -P examples/wheel/road.py
rm -rf "$built/environment"
