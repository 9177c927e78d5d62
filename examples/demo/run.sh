#!/usr/bin/env sh
# The main job, end to end: a U-Net's training step made to fit 70% of the memory it takes.
# All that it writes is in build/demo, what remat keeps of results too: nothing of yours is read or changed.
set -eu
command -v remat >/dev/null || { echo "demo: there is no remat on the PATH; run it by 'make demo'" >&2; exit 1; }
cd "$(dirname "$0")/../.."
rm -rf build/demo
mkdir -p build/demo
cd build/demo
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME

run() {
    printf "\n$ %s\n" "$*"
    "$@" >said.txt || { code=$?; cat said.txt; exit "$code"; }
    cat said.txt
    cat said.txt >>all.txt
}

echo "The demo takes about a minute, up to two on a busy machine. Its files are in build/demo; remove them as you like."
run remat zoo unet --batch 2 --image 96 --width 8 -o unet.onnx
run remat grad unet.onnx -o train.onnx
run remat profile train.onnx
run remat solve train.onnx --budget 70% --time-limit "${LIMIT:-10s}" -o train.plan.json
run remat emit train.plan.json -q
run remat verify train.plan.json
run remat show train.plan.json --html step.html -q

echo
awk '/^time / && !time { time = $NF }
     /^the process / { print "Won: a step holds " $4 " in place of " $3 ", measured, for " time " time, foretold. Its results are the same." }' all.txt
cat <<'WORDS'
Try next, in build/demo (with .venv/bin on the PATH, if make has set remat up):
  open step.html in a browser           what fills the memory, moment by moment
  remat sweep train.onnx                what other budgets would cost
  remat solve train.onnx --budget 55%   one of them
With a model of yours: docs/tutorials/pytorch.md, or docs/how-to/torch-compile.md to stay in PyTorch.
WORDS
