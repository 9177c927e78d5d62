"""What a plan says of memory and what is true of it, on graphs that nobody developed against.

    python examples/bench/unseen_torch.py FOLDER                                 (in an environment with PyTorch)
    for m in FOLDER/*.onnx; do remat grad $m; done
    for m in FOLDER/*.train.onnx; do remat profile $m --threads 1; done
    python examples/bench/places.py FOLDER [NAME ...] > places.json

Each training graph is solved for each budget within LIMIT seconds, in one folder as a user would, the smallest budget
first; then the rewritten model runs in processes of its own: with the plan's places, with the stock arena, and traced,
which tells the live bytes. `bare`: the overhead of the scheduling problem alone, as the solver is asked it without a
runtime, in the same time. Overheads are shares of the original's time by its costs; `cpu` is the least of six steps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from placement import child

BUDGETS = ("60%", "75%", "90%")
LIMIT = os.environ.get("LIMIT", "10s")


def solved(model: Path, budget: str, plan: Path) -> dict[str, Any]:
    """What `remat solve` says, and its exit code."""
    remat = str(Path(sys.executable).with_name("remat"))
    words = ["solve", str(model), "--budget", budget, "--time-limit", LIMIT, "--force", "--json", "-o", str(plan)]
    begun = time.monotonic()
    done = subprocess.run([remat, *words], capture_output=True, text=True, check=False)
    said = json.loads(done.stdout) if done.stdout else {"status": done.stderr[-300:]}
    return {**said, "exit": done.returncode, "wall": round(time.monotonic() - begun, 1)}


def live_bytes(plan: Any, model: Path) -> int:
    """The most that was requested of the arena at once in a strict run, and what lies outside of it."""
    from remat_cli.actions import emitting
    from remat_cli.checking.feeds import seeded
    from remat_cli.checking.processes import Bench
    from remat_cli.rewrite.predict import IN_ARENA

    graph = emitting.graph_of(plan)
    small = sum(graph.values[name].bytes for name in graph.weights if graph.values[name].bytes <= IN_ARENA)
    with Bench(seeded(graph, 0), "cpu", 600.0, plan.subject.threads) as bench:
        return bench.run(model, "strict").arena[0] + graph.resident - small


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


def rows(model: Path, folder: Path) -> list[dict[str, Any]]:
    bare = folder / f"{model.name}.problem.json"
    remat = str(Path(sys.executable).with_name("remat"))
    subprocess.run([remat, "problem", str(model), "-o", str(bare), "-q"], capture_output=True, check=True)
    found = []
    for share in BUDGETS:
        plan = folder / f"{model.name}.{share}.plan.json"
        said = solved(model, share, plan)
        alone = solved(bare, str(said.get("budget", share)), folder / "bare.plan.json")
        (folder / "bare.plan.json").unlink(missing_ok=True)
        row = {"graph": model.name.removesuffix(".train.onnx"), "budget": share, "bytes": said.get("budget")}
        row |= {key: said.get(key) for key in ("exit", "status", "overhead", "wall")}
        row |= {"bare": alone.get("overhead"), "bare_status": alone["status"], "notes": said.get("notes")}
        found.append(row | (tried(model, plan, said) if said["exit"] == 0 else {}))
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def main(folder: Path, names: list[str]) -> None:
    models = [folder / f"{name}.train.onnx" for name in names] or sorted(folder.glob("*.train.onnx"))
    with tempfile.TemporaryDirectory() as plans:
        print(json.dumps([row for model in models for row in rows(model, Path(plans))], indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
