"""How far the costs in a profile can be trusted: run it on a quiet machine, `python examples/bench/cost_model.py`.

For each network, in a folder of its own: profile twice with nothing cached; the rank correlation of the two; the sum of
the costs against a fresh run of the whole graph; a plan at 80% of the peak (or the next share that has one), its
predicted time against a run of the rewritten graph, whose profile must need no new measurement. Writes cost_model.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from profiles.costs import Costs, load

NETWORKS = {
    "resnet50": ["--batch", "1", "--image", "96"],
    "gpt2": ["--batch", "4", "--layers", "2", "--seq", "64", "--hidden", "256", "--heads", "4", "--vocabulary", "2000"],
    "unet": ["--batch", "1", "--image", "96", "--width", "16"],
}
BUDGETS = ("80%", "90%", "98%")  # the first that the heuristic finds a plan for


def remat(*arguments: str, cache: Path) -> Any:
    """The command's JSON answer."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "remat_cli.main", *arguments, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip()}
    return json.loads(done.stdout)


def bench(name: str, options: list[str], folder: Path, threads: str) -> dict[str, Any]:
    forward, model = str(folder / f"{name}.fw.onnx"), str(folder / f"{name}.onnx")
    remat("zoo", name, *options, "-o", forward, cache=folder)
    remat("grad", forward, "-o", model, cache=folder)
    runs, seconds = [], []
    for turn in range(2):
        begin = time.perf_counter()
        costs = str(folder / f"{name}.{turn}.yaml")
        remat("profile", model, "--threads", threads, "-o", costs, cache=folder / str(turn))
        seconds.append(round(time.perf_counter() - begin, 1))
        runs.append(load(Path(costs)))
    again = remat("profile", model, "--threads", threads, "--compare", cache=folder / "1")
    return {
        "ops": len(runs[0].ops),
        "signatures": again["signatures"],
        "profile_seconds": seconds,
        "measured_again": again["measured_now"],
        "rank_correlation": round(rank_correlation(*runs), 4),
        "sum_ns": again["sum"],
        "whole_graph_ns": again["compare"]["measured"],
        "sum_against_whole": again["compare"]["difference"],
        "rewritten": rewritten(folder, name, threads),
    }


def rewritten(folder: Path, name: str, threads: str) -> dict[str, Any]:
    """The plan's time beside the rewritten graph's, or why there is none."""
    model, plan = str(folder / f"{name}.onnx"), str(folder / f"{name}.plan.json")
    cache = folder / "1"
    for budget in BUDGETS:
        answer = remat("solve", model, "--budget", budget, "--method", "evict", "-o", plan, cache=cache)
        if "failed" not in answer and "failed" not in remat("emit", plan, cache=cache):
            break
    else:
        return {"failed": f"no plan at {', '.join(BUDGETS)} of the peak"}
    again = remat("profile", str(folder / f"{name}.remat.onnx"), "--threads", threads, "--compare", cache=cache)
    return {
        "budget": budget,
        "overhead": round(answer["overhead"], 4),
        "predicted_ns": answer["cost"],
        "measured_ns": again["compare"]["measured"],
        "difference": round(answer["cost"] / again["compare"]["measured"] - 1, 4),
        "new_measurements": again["measured_now"],
    }


def rank_correlation(one: Costs, other: Costs) -> float:
    """Spearman's, ties at their mean rank, over the ops that cost anything."""
    names = [name for name, cost in one.ops.items() if cost.ns]
    ranks = [_ranks(np.array([costs.ops[name].ns for name in names])) for costs in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="2")
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "cpus": os.cpu_count()}
    found |= {"threads": int(given.threads), "load_at_start": round(os.getloadavg()[0], 1), "networks": {}}
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            found["networks"][name] = bench(name, NETWORKS[name], Path(folder), given.threads)
        print(name, json.dumps(found["networks"][name]), flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
