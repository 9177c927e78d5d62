#!/usr/bin/env sh
# On the GPU machine: join the pieces of prepare.sh, install them into SITE.
#
#   sh examples/gpu/install.sh [FOLDER [SITE]]      (FOLDER: build/gpu/wheels; SITE: build/gpu/site)
#
# Then PYTHONPATH=SITE:. for everything. A second call does nothing.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-build/gpu/wheels}
site=${2:-build/gpu/site}
python=${PYTHON:-python3}
[ ! -e "$site/.ready" ] || exit 0
joined=$(mktemp -d)
for first in "$folder"/*/*.part00; do
  wheel=$(basename "$first" .part00)
  cat $(for piece in "$folder"/*/"$wheel".part*; do echo "$(basename "$piece") $piece"; done | sort | cut -d' ' -f2) > "$joined/$wheel"
done
(cd "$joined" && sha256sum -c --quiet -) < "$(ls "$folder"/*/SHA256SUMS)"
"$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --no-compile --no-cache-dir --target "$site" "$joined"/*.whl
rm -r "$joined"
# onnxruntime looks for CUDA's libraries beside itself
nvidia=$("$python" -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
if [ -n "$nvidia" ] && [ ! -e "$site/nvidia" ]; then ln -s "$nvidia" "$site/nvidia"; fi
touch "$site/.ready"
