"""How far the costs in a profile can be trusted: run it on a quiet machine, `python examples/bench/cost_model.py`.

For each network, in its own folder: two profiles with nothing cached, and the rank correlation of the two; the sum
of the costs against three fresh runs of the whole graph, each in a process of its own; a plan (the first budget that
is met), its predicted time against the rewritten graph's, whose profile must need no new measurement. A machine that
others share is not as fast at all times, so the rewritten graph and the original also run in turn (each slower then, as
the other's threads wait beside it), and what that shows of the plan's overhead stands beside what was predicted of it.
Results are added to cost_model.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from profiles import device as devices
from profiles.costfile import load
from profiles.costs import Costs
from profiles.running import bind, run, session
from remat_cli.ingest import ingest
from remat_cli.model.signatures import feeds_of, ops_of

NETWORKS = {
    "resnet50": ["--batch", "8", "--image", "96"],
    "gpt2": [
        "--batch",
        "8",
        "--layers",
        "2",
        "--seq",
        "128",
        "--hidden",
        "256",
        "--heads",
        "4",
        "--vocabulary",
        "2000",
    ],
    "unet": ["--batch", "4", "--image", "128", "--width", "16"],
}
BUDGETS = ("75%", "90%", "98%")  # the first that the heuristic finds a plan for
FRESH = 3
TURNS = 12  # of the original and the rewritten graph, one after the other


def remat(*arguments: str, cache: Path) -> Any:
    """The command's JSON answer."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "remat_cli", *arguments, "--json"]
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
    profiled = ("profile", model, "--threads", threads, "--compare")
    fresh = [remat(*profiled, cache=folder / "1") for _ in range(FRESH)]
    return {
        "options": options,
        "ops": len(runs[0].ops),
        "signatures": fresh[0]["signatures"],
        "profile_seconds": seconds,
        "measured_again": fresh[0]["measured_now"],
        "rank_correlation": round(rank_correlation(*runs), 4),
        "sum_ns": [costs.total for costs in runs],
        "median_ns": [costs.whole.median for costs in runs],
        "alone_against_whole": [round(costs.whole.alone / costs.whole.whole_graph - 1, 4) for costs in runs],
        "fresh_whole_ns": [one["compare"]["measured"] for one in fresh],
        "fresh_median_ns": [one["compare"]["median"] for one in fresh],
        "sum_against_fresh": [one["compare"]["difference"] for one in fresh],
        "rewritten": rewritten(folder, name, threads),
    }


def rewritten(folder: Path, name: str, threads: str) -> dict[str, Any]:
    """The plan's time beside the rewritten graph's, or why there is none."""
    model, plan = folder / f"{name}.onnx", str(folder / f"{name}.plan.json")
    cache = folder / "1"
    for budget in BUDGETS:
        asked = ("--budget", budget, "--method", "evict", "--time-limit", "20s", "-o", plan)
        answer = remat("solve", str(model), *asked, cache=cache)
        if "failed" not in answer:
            break
    else:
        return {"failed": f"no plan at {', '.join(BUDGETS)} of the peak"}
    emitted = remat("emit", plan, cache=cache)
    after = folder / f"{name}.remat.onnx"
    again = remat("profile", str(after), "--threads", threads, "--compare", cache=cache)
    before, took, ratio = in_turn(model, after, int(threads))
    return {
        "budget": budget,
        "clones": emitted["clones"],
        "anchors": emitted["anchors"],
        "new_measurements": again["measured_now"],
        "predicted_ns": emitted["time"],
        "measured_ns": again["compare"]["measured"],
        "difference": round(emitted["time"] / again["compare"]["measured"] - 1, 4),
        "predicted_overhead": round(emitted["time"] / emitted["baseline_time"] - 1, 4),
        "in_turn": {"original_ns": before, "rewritten_ns": took, "overhead": round(ratio - 1, 4)},
    }


def in_turn(before: Path, after: Path, threads: int) -> tuple[int, int, float]:
    """Median times of both, and the median of their ratio from turn to turn, in the strict session."""
    device = devices.find("cpu", threads)
    graph = ingest(before, {})
    feeds = feeds_of(graph, ops_of(graph))
    running = [session(path.read_bytes(), device, folder=path.parent) for path in (before, after)]
    bound = [bind(one, feeds, device) for one in running]
    times: list[list[int]] = [[], []]
    for turn in range(TURNS + 3):
        for one, binding, found in zip(running, bound, times, strict=True):
            begin = time.perf_counter_ns()
            run(one, binding)
            if turn >= 3:
                found.append(time.perf_counter_ns() - begin)
    ratios = [second / first for first, second in zip(*times, strict=True)]
    return int(statistics.median(times[0])), int(statistics.median(times[1])), statistics.median(ratios)


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
    path = Path(__file__).with_suffix(".json")
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    found |= {"machine": platform.processor() or platform.machine(), "cpus": os.cpu_count()}
    for name in given.names:
        load_before = round(os.getloadavg()[0], 1)
        with tempfile.TemporaryDirectory() as folder:
            row = bench(name, NETWORKS[name], Path(folder), given.threads)
        found.setdefault(f"{given.threads} threads", {})[name] = {"load_before": load_before, **row}
        print(name, json.dumps(row), flush=True)
        path.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
