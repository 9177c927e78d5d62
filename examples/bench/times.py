"""Is a step's time as it was predicted? Six minutes on a quiet machine.

For each network, on one thread, in a folder and with a cache of its own: `profile`, `solve` at a budget, and
`verify --time`, which runs the model and its rewriting in turn. What is stated of either is predicted over measured,
and so of the overhead (a difference of shares); of the ops that are computed again, what they took and what was
predicted over what their first computes took in the model as it is. `probe` is what the op that is timed with every
profile took at `verify`, over what it took at `profile`: how much the machine itself changed in between. Times are
processor seconds of the thread that runs, so that other work on the machine is in them only as far as it leaves caches
cold; `load` says how much of that there was.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from profiles.costfile import load

SMALL = "--batch 4 --layers 3 --seq 128 --hidden 256 --heads 4 --vocabulary 2000"
NETWORKS = {
    "resnet18": ("resnet18 --batch 16 --image 64", "86%"),
    "mobilenet": ("mobilenet-v2 --batch 8 --image 96", "60%"),
    "unet": ("unet --batch 2 --image 128 --width 16", "60%"),
    "gpt2": (f"gpt2 {SMALL}", "60%"),
    "bert": (f"bert-base {SMALL}", "65%"),
    "vit": ("vit-b16 --batch 16 --layers 3 --image 96 --hidden 256 --heads 4", "60%"),
    "vgg": ("vgg16 --batch 2 --image 64", "100%"),
}
PROFILING, SOLVING = "10s", "6s"  # limits
NEAR = 0.05


def remat(*arguments: str, cache: Path) -> Any:
    """The command's JSON answer."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "remat_cli", *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr.strip()[-300:]}


def bench(name: str, folder: Path) -> dict[str, Any]:
    (network, *options), budget = NETWORKS[name][0].split(), NETWORKS[name][1]
    forward, model, plan = (str(folder / f"{name}.{kind}") for kind in ("fw.onnx", "onnx", "plan.json"))
    remat("zoo", network, *options, "-o", forward, cache=folder)
    remat("grad", forward, "-o", model, cache=folder)
    begin = time.perf_counter()
    remat("profile", model, "--threads", "1", "--time-limit", PROFILING, cache=folder)
    solved = remat("solve", model, "--budget", budget, "--time-limit", SOLVING, "-o", plan, cache=folder)
    if "failed" in solved:
        return {"network": name, "budget": budget, **solved}
    verified = remat("verify", plan, "--time", cache=folder)
    if "failed" in verified:
        return {"network": name, "budget": budget, **verified}
    timed, costs = verified["timed"], load(folder / f"{name}.costs.yaml")
    before, after = solved["baseline_cost"], solved["emitted_cost"]
    again = timed["again"]
    return {
        "network": name,
        "options": " ".join(options),
        "budget": budget,
        "ops": len(costs.ops),
        "original_ms": round(timed["before"] / 1e6, 1),
        "original": round(before / timed["before"], 3),
        "rewritten": round(after / timed["after"], 3),
        "overhead_measured": round(timed["after"] / timed["before"] - 1, 4),
        "overhead_predicted": round(after / before - 1, 4),
        "again": again and again["ops"],
        "again_took": again and round(again["took"] / again["first"], 3),
        "again_predicted": again and round(again["foretold"] / again["first"], 3),
        "probe": round(timed["probe"] / costs.probe, 3),
        "waited": timed["waited"],
        "seconds": round(time.perf_counter() - begin),
    }


KEY = ("network",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", default=list(NETWORKS))


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in asked.names:
        with tempfile.TemporaryDirectory() as folder:
            yield bench(name, Path(folder))


def conclude(known: list[dict[str, Any]]) -> None:
    timed = [row for row in known if "original" in row]
    for what in ("original", "rewritten") if timed else ():
        off = [abs(row[what] - 1) for row in timed]
        near = sum(share <= NEAR for share in off)
        print(f"{what}: {near} of {len(off)} within 5%, median {statistics.median(off):.1%}, worst {max(off):.1%}")
