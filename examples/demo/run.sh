#!/usr/bin/env sh
# The main job, end to end: a U-Net's training step made to fit 70% of the memory it takes.
# Writes into build/demo; `make demo` puts remat on the PATH.
set -eu
mkdir -p build/demo
cd build/demo

run() {
    printf "\n$ %s\n" "$*"
    "$@"
}

run remat zoo unet --batch 2 --image 96 --width 8 -o unet.onnx
run remat grad unet.onnx -o train.onnx
run remat profile train.onnx
run remat solve train.onnx --budget 70% --time-limit "${LIMIT:-60s}" -o train.plan.json
run remat emit train.plan.json -q
run remat verify train.plan.json
run remat show train.plan.json
