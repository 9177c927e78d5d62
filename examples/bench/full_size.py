"""Models of full size, op by op: what the search found, what was handed over, and what each command took.

Costs are estimates for a CPU, and no model is run. `found` is the last plan that `solve -v` reported before it placed
values, and `handed_over` is the plan it wrote; both are shares of time beyond the model as it is. `processor_seconds`
counts all cores that the row could use. Cases that were not measured have no row.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NETWORKS = {  # name: network, optimizer and loss
    "GPT-2 XL": ("gpt2 --layers 48 --hidden 1600 --heads 25 --seq 1024 --batch 4 --vocabulary 50257", "adamw"),
    "BERT-large": ("bert-large --batch 16 --seq 512", "adamw"),
    "ViT-L": ("vit-l16 --batch 32", "adamw"),
    "DenseNet-201": ("densenet201 --batch 32 --image 224", "momentum"),
    "ResNet-152": ("resnet152 --batch 32", "momentum"),
    "EfficientNet-B7": ("efficientnet-b7 --batch 8 --image 600", "momentum"),
    "Inception v3": ("inception-v3 --batch 64", "momentum"),
    "U-Net": ("unet --batch 4 --image 576", "adamw"),
    "Llama of 1 B": ("llama-1b --batch 4 --seq 1024", "adamw"),
    "Mamba": ("mamba-130m --batch 2 --seq 512", "adamw"),
    "ConvNeXt-L": ("convnext-large --batch 32", "adamw"),
    "Diffusion U-Net": ("diffusion-unet --batch 4 --image 256", "adamw --loss mse"),
}
BUDGETS = "75%", "60%", "50%"
TWICE = "GPT-2 XL, 75%, state held twice", "DenseNet-201, 50%, state held twice"
# name: network, optimizer, budget, further flags of solve
CASES: dict[str, tuple[str, str, str, list[str]]] = {
    f"{name}, {budget}": (*of, budget, []) for name, of in NETWORKS.items() for budget in BUDGETS
}
CASES |= {name: (*CASES[name.rpartition(",")[0]][:3], ["--no-in-place"]) for name in TWICE}
REPORTED = re.compile(r"plan \+([0-9.]+)%")


class Timed:
    """Runs commands of remat and notes the processor seconds of each."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def remat(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        before = _spent()
        command = [sys.executable, "-m", "remat_cli", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.seconds[arguments[0]] = round(_spent() - before, 1)
        return done


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bench(name: str, seconds: float, folder: Path) -> dict[str, Any]:
    network, optimizer, budget, flags = CASES[name]
    forward, model, plan = (str(folder / file) for file in ("forward.onnx", "train.onnx", "train.plan.json"))
    timed = Timed()
    timed.remat("zoo", *network.split(), "-o", forward)
    timed.remat("grad", forward, "--optimizer", *optimizer.split(), "-o", model)
    limits = ("--time-limit", f"{seconds:.0f}s", "--force", "-v", "--json", "-o", plan)
    done = timed.remat("solve", model, "--budget", budget, *flags, *limits)
    timed.remat("emit", plan, "-o", str(folder / "remat.onnx"))
    timed.remat("show", plan, "--html", str(folder / "page.html"))
    answer = json.loads(done.stdout)
    placement = json.loads(Path(plan).read_text())["placement"]
    return {
        "budget": answer["budget"],
        "found": round(float(REPORTED.findall(done.stderr)[-1]) / 100, 5),
        "handed_over": round(answer["overhead"], 5),
        "block_over_live_bytes": round(placement["block"] / placement["bound"], 4),
        "unused_budget": round(1 - answer["arena"] / answer["budget"], 4),
        "processor_seconds": timed.seconds,
    }


KEY = ("case",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=CASES, action="append")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in asked.only or CASES:
        with tempfile.TemporaryDirectory() as folder:
            yield {"case": name, **bench(name, asked.seconds, Path(folder))}
