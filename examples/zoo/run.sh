#!/bin/sh
# Build a few networks of the zoo in a temporary folder.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
remat zoo resnet50 --batch 32
remat zoo densenet121 --batch 8 --weights inputs
remat zoo gpt2 --batch 4 --seq 256
remat zoo unet --batch 8 --upsample linear --image 128
remat zoo rotor-toy
