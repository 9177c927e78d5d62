#!/bin/sh
# Checkmate's Figure 3: what fills the memory of well-known networks in training, with the batch that one device had in
# each network's own paper. Writes figure3.csv and figure3.png beside this script; nothing is run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

step() { # NAME NETWORK SETTINGS...: its training graph, with costs of a V100 by estimate
    name=$1
    shift
    remat zoo "$@" --weights inputs -q -o "forward-$name"
    remat grad "forward-$name" -q -o "$name.onnx"
    remat profile "$name.onnx" --estimate v100 -q
}

step vgg19 vgg19 --batch 64
step inception-v3 inception-v3 --batch 32
step resnet152 resnet152 --batch 32
step densenet201 densenet201 --batch 32
step fcn8 fcn8 --batch 20 --image 512
step bert-large bert-large --batch 8 --seq 512
remat show vgg19.onnx inception-v3.onnx resnet152.onnx densenet201.onnx fcn8.onnx bert-large.onnx \
    --breakdown --plot "$here/figure3.png" --csv >"$here/figure3.csv"
