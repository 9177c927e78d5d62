#!/bin/sh
# Run the tests of remat_cli.torch with versions of torch, each in an environment that sees all that this Python does.
# torch-versions.sh PYTHON FOLDER ends|all [TESTS]: the oldest and the newest of .ci/torch-versions, or all of them.
set -eu
python=$1 folder=$2 which=$3
shift 3
versions=$(grep -v '^#' .ci/torch-versions)
test "$which" = all || versions=$(printf '%s\n' "$versions" | sed -n '1p;$p')
for version in $versions; do
    beside="$folder/torch-$version"
    test -x "$beside/bin/python" || "$python" -m venv "$beside"
    "$python" -c "import site; print(site.getsitepackages()[0])" >"$("$beside/bin/python" -c "import site; print(site.getsitepackages()[0])")/beside.pth"
    "$beside/bin/python" -c "import torch" 2>/dev/null ||
        "$beside/bin/python" -m pip install --quiet --disable-pip-version-check "torch==$version"
    echo "torch $version"
    "$beside/bin/python" -m pytest "${@:-tests/torch}"
done
