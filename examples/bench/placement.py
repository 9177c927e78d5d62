"""What a step's process grows by: a plan's places against the stock arena, each in a process of its own.

For each plan, made with measured costs: what it says of live bytes beyond inputs and weights, the block, the growth of
the process's peak resident set in six runs from before the first, the CPU time of a step (the least of six), and
whether the results are the same bytes. `traced`: the plan's places are not known and the first run finds them.
`kept`: the caller still holds one run's results while the next goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUNS = 6
HOW = ("planned", "traced", "stock", "planned-kept", "stock-kept")


def one(plan: str, model: str, how: str) -> None:
    """In a process of its own: load, then run."""
    import onnxruntime

    import remat_cli as remat
    from profiles.strict import strict_options
    from remat_cli.checking.feeds import draw_feeds
    from remat_cli.checking.weight import resident_now, resident_peak
    from remat_cli.ingest import ingest
    from remat_cli.runtime import session as sessions

    feeds = draw_feeds(ingest(Path(model), {}), 0)
    threads = remat.load_plan(plan).subject.threads
    if how.startswith("stock"):
        options = strict_options()
        options.intra_op_num_threads = threads
        running: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    else:
        places = json.loads(Path(plan).read_text())["placement"]
        from remat_cli.formats.declared import declared
        from solvers.placement.placed import Placement

        known = None if how == "traced" else declared(Placement, places)
        running = sessions.planned(model, known, threads=threads)
    before = resident_now()
    times, results = [], None
    for _ in range(RUNS):
        results = results if how.endswith("-kept") else None
        begun = time.process_time()
        results = running.run(None, feeds)
        times.append(time.process_time() - begun)
    assert results is not None
    found: dict[str, Any] = {"growth": resident_peak() - before, "cpu_seconds": round(min(times), 4)}
    found["digest"] = hashlib.sha256(b"".join(r.tobytes() for r in results)).hexdigest()
    if not how.startswith("stock"):
        found["missed"] = running.missed_in_all.requests
    print(json.dumps(found))


def child(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--one", *arguments], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(plan: Path) -> dict[str, Any]:
    import remat_cli as remat
    from remat_cli.actions import emitting

    stated = remat.load_plan(plan)
    places = stated.recorded.placement
    assert places is not None, f"{plan} is not for planned places"
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "step.onnx"
        emitting.write(emitting.emit(stated), model)
        found = {how: child(str(plan), str(model), how) for how in HOW}
    same = len({one.pop("digest") for one in found.values()}) == 1
    resident = stated.recorded.resident
    said = {"plan": plan.name, "budget": stated.budget, "live": stated.peak - resident, "block": places["block"]}
    return {**said, "requests": len(places["allocations"]), "same_bytes": same, **found}


KEY = ("plan",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plans", nargs="+", type=Path)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    yield from map(measured, asked.plans)


if __name__ == "__main__":
    one(*sys.argv[2:])
