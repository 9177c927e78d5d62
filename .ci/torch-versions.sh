#!/bin/sh
# Run the tests of remat_cli.torch with versions of torch, each in an environment that sees all that this Python does.
# torch-versions.sh PYTHON FOLDER ends|all [TESTS]: the oldest and the newest of .ci/torch-versions where they are
# installed below FOLDER, or all of them, which installs them: some gigabytes each. What cannot be had is said. All
# versions run, also after one that fails.
set -eu
python=$1 folder=$2 which=$3
shift 3
versions=$(grep -v '^#' .ci/torch-versions)
test "$which" = all || versions=$(printf '%s\n' "$versions" | sed -n '1p;$p')
failed=""
for version in $versions; do
    beside="$folder/torch-$version"
    if test "$which" = all && ! test -x "$beside/bin/python"; then
        "$python" -m venv "$beside"
        "$python" -c "import site; print(site.getsitepackages()[0])" >"$("$beside/bin/python" -c "import site; print(site.getsitepackages()[0])")/beside.pth"
        timeout 1200 "$beside/bin/python" -m pip install --quiet --disable-pip-version-check "torch==$version" || true
    fi
    if test -x "$beside/bin/python" && "$beside/bin/python" -c "import torch" 2>/dev/null; then
        echo "torch $version"
        "$beside/bin/python" -m pytest "${@:-tests/torch}" || failed="$failed $version"
    else
        echo "torch-versions: torch $version is skipped, for it is not installed in $beside"
    fi
done
test -z "$failed" || { echo "torch-versions: failed with torch$failed"; exit 1; }
