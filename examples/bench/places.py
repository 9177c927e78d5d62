"""What a plan says of memory and what is true of it, on graphs that nobody developed against.

    python examples/bench/unseen_torch.py FOLDER                                 (in an environment with PyTorch)
    for m in FOLDER/*.onnx; do remat grad $m; done
    for m in FOLDER/*.train.onnx; do remat profile $m --threads 1; done
    python examples/bench/run.py places FOLDER [NAME ...]

Each training graph is solved for each budget within LIMIT, in one folder as a user would, the smallest budget first;
then the rewritten model runs in processes of its own: with the plan's places, with the stock arena, and traced, which
tells the live bytes. `bare`: the overhead of the scheduling problem alone, as the solver is asked it without a runtime,
within the same limit; it is not asked where what was found is within half a point of `bound`, what no schedule at all
is below. The limit is in seconds of processor, of all threads together, so that other work on the machine changes
little. Overheads are shares of the original's time by its costs; the `cpu` of `tried` is the least of six steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placement import child

BUDGETS = ("60%", "75%", "90%")
LIMIT = os.environ.get("LIMIT", "10s")
NEAR = 0.005
ON_PROCESSOR = (
    "import time, solvers.clock as c; c.monotonic = time.process_time; from remat_cli.main import main; main()"
)


def solved(model: Path, budget: str, plan: Path, *more: str) -> dict[str, Any]:
    """What `remat solve` says, and its exit code."""
    words = [
        "solve",
        str(model),
        "--budget",
        budget,
        "--time-limit",
        LIMIT,
        "--force",
        "--json",
        "-o",
        str(plan),
        *more,
    ]
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", ON_PROCESSOR, *words], capture_output=True, text=True, check=False)
    said = json.loads(done.stdout) if done.stdout else {"status": done.stderr[-300:]}
    return {**said, "exit": done.returncode, "wall": round(time.monotonic() - begun, 1)}


def live_bytes(plan: Any, model: Path) -> int:
    """The most that was requested of the arena at once in a strict run, and what lies outside of it."""
    from remat_cli.actions import emitting
    from remat_cli.checking.feeds import draw_feeds
    from remat_cli.checking.processes import Bench
    from remat_cli.model.sessions import STRICT
    from remat_cli.rewrite.predict import IN_ARENA_BYTES

    graph = emitting.graph_of(plan)
    small = sum(graph.values[name].bytes for name in graph.weights if graph.values[name].bytes <= IN_ARENA_BYTES)
    with Bench(draw_feeds(graph, 0), "cpu", 600.0, plan.subject.threads) as bench:
        return bench.run(model, STRICT).arena[0] + graph.resident - small


def tried(model: Path, path: Path, said: dict[str, Any]) -> dict[str, Any]:
    """The rewritten model at work, and the original beside it."""
    import remat_cli as remat
    from remat_cli.actions import emitting

    plan = remat.load_plan(path)
    with tempfile.TemporaryDirectory() as folder:
        step = Path(folder) / "step.onnx"
        emitting.write(emitting.emit(plan), step)
        live = live_bytes(plan, step)
        ours, stock = child(str(path), str(step), "planned"), child(str(path), str(step), "stock")
    before = child(str(path), str(model), "stock")
    block = said["arena"] - said["resident"]
    return {
        "live": said["live"],
        "live_measured": live,
        "block_over_live": round(block / (said["live"] - said["resident"]), 4),
        "growth": ours["growth"],
        "growth_stated": block,
        "growth_stock": stock["growth"],
        "growth_original": before["growth"],
        "missed": ours["missed"],
        "same_bytes": ours["digest"] == stock["digest"] == before["digest"],
        "cpu": ours["cpu_seconds"],
        "cpu_stock": stock["cpu_seconds"],
    }


def tried_at_budgets(model: Path, folder: Path) -> Iterator[dict[str, Any]]:
    bare = folder / f"{model.name}.problem.json"
    remat = str(Path(sys.executable).with_name("remat"))
    subprocess.run([remat, "problem", str(model), "-o", str(bare), "-q"], capture_output=True, check=True)
    for share in BUDGETS:
        plan = folder / f"{model.name}.{share}.plan.json"
        said = solved(model, share, plan)
        alone = {} if _near_bound(said) else solved(bare, str(said.get("budget", share)), folder / "bare.plan.json")
        (folder / "bare.plan.json").unlink(missing_ok=True)
        row = {"graph": model.name.removesuffix(".train.onnx"), "budget": share, "bytes": said.get("budget")}
        row |= {key: said.get(key) for key in ("exit", "status", "overhead", "wall")}
        row |= {"bound": _bound(said), "bare": alone.get("overhead"), "bare_status": alone.get("status")}
        row |= {"notes": said.get("notes")}
        yield row | (tried(model, plan, said) if said["exit"] == 0 else {})


def _bound(said: dict[str, Any]) -> float | None:
    """The least overhead that any schedule can have."""
    least = said.get("bound_any_order")
    return None if least is None else least / said["baseline_cost"] - 1


def _near_bound(said: dict[str, Any]) -> bool:
    bound, found = _bound(said), said.get("overhead")
    return bound is not None and found is not None and found <= bound + NEAR


KEY = ("graph", "budget")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    models = [asked.folder / f"{name}.train.onnx" for name in asked.names]
    for model in models or sorted(asked.folder.glob("*.train.onnx")):
        with tempfile.TemporaryDirectory() as plans:
            yield from tried_at_budgets(model, Path(plans))
