#!/usr/bin/env sh
# Trains a small net twice on stock ONNX Runtime: as differentiated, and rewritten to half of the memory.
# Writes into build/train; needs remat on the PATH (`make setup`, then PATH=.venv/bin:$PATH).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p build/train
cd build/train

remat zoo mlp --layers 16 --hidden 64 --features 32 --batch 2048 -o net.onnx
remat grad net.onnx --optimizer momentum --learning-rate 0.05 -o step.onnx
remat profile step.onnx
remat solve step.onnx --budget 50% --time-limit "${LIMIT:-20s}" -o step.plan.json
remat emit step.plan.json -q
python "$here/train.py" net.onnx step.onnx step.remat.onnx --steps "${STEPS:-40}"
