"""What a step's process grows by: planned places against the stock arena, each in a process of its own.

    python examples/bench/placement.py TRAIN.onnx ... > placement.json

For each training graph, in the strict session: the live bytes that were planned (from a traced run), the block, the
growth of the process's peak resident set from before the first run, the CPU time of a step (the least of six), and
whether the results are the same bytes. `kept`: the caller still holds one run's results while the next goes on.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RUNS = 6
HOW = ("traced", "planned", "stock", "planned-kept", "stock-kept")


def resident() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) * 1024


def one(path: str, how: str, places: str) -> None:
    """In a process of its own: load, then run; `places` is a file of them."""
    from remat_cli.checking.feeds import seeded
    from remat_cli.ingest import ingest
    from remat_cli.runtime import session as sessions
    from solvers.placement.placed import Placement

    feeds = seeded(ingest(Path(path), {}), 0)
    if how.startswith("stock"):
        running: Any = sessions.session(path)
    else:
        known = json.loads(Path(places).read_text()) if how.startswith("planned") else None
        placement = (
            Placement(known["block"], known["bound"], tuple(map(tuple, known["allocations"]))) if known else None
        )
        running = sessions.planned(path, placement)
    keeps = how.endswith("-kept")
    Path("/proc/self/clear_refs").write_text("5")  # the peak of the resident set starts again from here
    before = resident()
    times, results = [], None
    for _ in range(1 if how == "traced" else RUNS):
        results = results if keeps else None
        begun = time.process_time()
        results = running.run(None, feeds)
        times.append(time.process_time() - begun)
    assert results is not None
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    found: dict[str, Any] = {"growth": int(status) * 1024 - before, "cpu_seconds": round(min(times), 4)}
    found["digest"] = hashlib.sha256(b"".join(r.tobytes() for r in results)).hexdigest()
    if not how.startswith("stock"):
        where = running.placement
        found |= {"block": where.block, "live": where.bound, "missed": running.missed.requests}
        if how == "traced":
            entry = {"block": where.block, "bound": where.bound, "allocations": where.allocations}
            Path(places).write_text(json.dumps(entry))
    print(json.dumps(found))


def child(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(paths: list[str]) -> None:
    rows = []
    for path in paths:
        places = f"{path}.places.json"
        found = {how: child("--one", path, how, places) for how in HOW}
        Path(places).unlink()
        same = len({one.pop("digest") for one in found.values()}) == 1
        rows.append({"graph": Path(path).name, "same_bytes": same} | found)
        print(json.dumps(rows[-1]), file=sys.stderr)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        one(*sys.argv[2:])
    else:
        main(sys.argv[1:])
