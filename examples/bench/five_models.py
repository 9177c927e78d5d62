"""Five known models beside checkpointing layer by layer, which is what frameworks' switches do: a table of the pages.

Every model is a training step with gradients, planned op by op with estimated costs of a V100; no model is run.
`checkpoint-layers` keeps one value a layer and computes each layer again as a whole, as `torch.utils.checkpoint` around
every layer does. remat is then asked for the same memory, and for half of what the model needs as it stands. The page's
table is written at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "what-is-proved.md"
BLOCK = re.compile(r"(<!-- results: .*? -->\n).*?(<!-- end of results -->)", re.DOTALL)
MODELS = {
    "ResNet-50, batch 64": "resnet50 --batch 64",
    "MobileNet v2, batch 64": "mobilenet-v2 --batch 64",
    "U-Net, batch 8, 256 pixels": "unet --batch 8 --image 256",
    "GPT-2 small, batch 8 x 512": "gpt2 --batch 8 --seq 512",
    "BERT base, batch 16 x 384": "bert-base --batch 16 --seq 384",
}
KEPT = ("status", "baseline_peak", "peak", "overhead", "gap", "cost", "bound", "bound_any_order", "seconds")


def remat(*arguments: str) -> dict[str, Any]:
    """The command's JSON answer."""
    command = [sys.executable, "-m", "remat_cli", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def bench(network: str, seconds: float, folder: Path) -> dict[str, Any]:
    forward, model = str(folder / "forward.onnx"), str(folder / "train.onnx")
    remat("zoo", *network.split(), "-o", forward)
    remat("grad", forward, "-o", model)
    remat("profile", model, "--estimate", "v100")

    def solve(*question: str) -> dict[str, Any]:
        limits = ("--time-limit", f"{seconds:.0f}s", "--force", "-o", str(folder / "plan.json"))
        answer = remat("solve", model, *question, *limits)
        return {key: answer[key] for key in KEPT}

    layers = solve("--method", "checkpoint-layers", "--budget", "99%")
    same, half = solve("--budget", str(layers["peak"])), solve("--budget", "50%")
    return {"checkpoint_layers": layers, "same_memory": same, "half_memory": half}


def table(rows: dict[str, Any]) -> str:
    """Extra time by layers, and by remat in the same memory and in half of what the model needs."""
    lines = [
        "| Model | Memory as it stands | By layers | remat, same memory | remat, half the memory | Proved within |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in rows.items():
        layers, same, half = (found[key] for key in ("checkpoint_layers", "same_memory", "half_memory"))
        share = layers["peak"] / layers["baseline_peak"]
        gap = max(half["cost"] / half["bound_any_order"] - 1, 0)
        lines.append(
            f"| {name} | {layers['baseline_peak'] / 1e9:.1f} GB | +{layers['overhead']:.1%} in {share:.0%} |"
            f" +{same['overhead']:.1%} | +{half['overhead']:.1%} | {gap:.1%} |"
        )
    return "\n".join(lines) + "\n"


KEY = ("model",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, network in MODELS.items():
            yield {"model": name, **bench(network, asked.seconds, Path(folder))}


def conclude(known: list[dict[str, Any]]) -> None:
    """The page's table."""
    found = table({row["model"]: row for row in known})
    PAGE.write_text(BLOCK.sub(lambda block: block[1] + found + block[2], PAGE.read_text()))
