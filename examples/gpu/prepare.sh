#!/usr/bin/env sh
# What a GPU machine without internet or compiler lacks, remat's own wheel among it, as pieces under 60 MB that can be
# carried one by one.
#
#   sh examples/gpu/prepare.sh [FOLDER]      (FOLDER: build/gpu/wheels)
#
# On the machine, with the pieces of FOLDER in one place again: install.sh. For another Python there: TAG=cp313 VERSION=3.13.
# MORE: other wheels that it lacks, such as MORE="click==8.5.1".
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-build/gpu/wheels}
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
rm -rf "$folder"
mkdir -p "$folder/whole"
platforms=$(for n in 39 35 34 31 28 27 26 24 17 12 5; do printf ' --platform manylinux_2_%s_x86_64' "$n"; done)
wanted=$(sed -nE 's/^((onnxruntime-gpu|pyscipopt|PySCIPOpt)==.*)/\1/p' constraints.txt)
for package in $wanted ${MORE:-}; do
  # shellcheck disable=SC2086
  "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --implementation cp \
    --python-version "${VERSION:-3.12}" --abi "${TAG:-cp312}" --abi abi3 --abi none --platform manylinux2014_x86_64 $platforms --platform any \
    -d "$folder/whole" "$package"
done
"$python" -m pip wheel -q --disable-pip-version-check --no-deps -w "$folder/whole" .
for wheel in "$folder"/whole/*.whl; do
  split -b 55m -d -a 2 "$wheel" "$folder/$(basename "$wheel").part"
done
(cd "$folder/whole" && sha256sum ./*.whl) > "$folder/SHA256SUMS"
rm -r "$folder/whole"
# one folder a call: the last, smaller pieces and the sums go together
for piece in "$folder"/*.part*; do
  size=$(wc -c < "$piece")
  for n in 0 1 2 3 4 5 6 7 8 9; do
    held=$(cat "$folder/$n"/* 2>/dev/null | wc -c)
    [ $((held + size)) -gt 60000000 ] || break
  done
  mkdir -p "$folder/$n"
  mv "$piece" "$folder/$n/"
done
mv "$folder/SHA256SUMS" "$folder/0/"
du -sb "$folder"/*
