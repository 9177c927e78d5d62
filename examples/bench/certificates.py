"""Certificates of the bench's networks: what they prove beside what was printed, how large, how long to make and check.

Each network at the budgets of `exact.py`, with `auto` and with `milp`, by the command itself; `check` runs in a process
of its own, and its seconds are of the processor, starting Python included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import copy
from time import monotonic
from typing import Any

from exact import BUDGETS

ROOT = Path(__file__).parents[2]
INSTANCES = {**BUDGETS, "gpt2_4l": (0.7,), "linear4": (0.5,), "linear8": (0.5, 0.25)}


def remat(*words: str, folder: Path) -> tuple[int, Any, float]:
    """Exit code, what was printed, CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "remat_cli", *words, "--json"]
    ended = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended.returncode, json.loads(ended.stdout or b"{}"), spent


def row(path: Path, budget: float, method: str, seconds: float, folder: Path) -> dict[str, Any]:
    copy(path, folder)
    (folder / "c.cert.json").unlink(missing_ok=True)
    stem, limit = path.name.removesuffix(".problem.json"), f"{seconds}s"
    asked = ("--budget", f"{budget:.2%}", "--method", method, "--time-limit", limit, "--force")
    asked = (*asked, "--certificate", "c.cert.json")
    (folder / f"{stem}.plan.json").unlink(missing_ok=True)
    begun = monotonic()
    _, said, _ = remat("solve", path.name, *asked, folder=folder)
    solved = monotonic() - begun
    if not (folder / "c.cert.json").exists():  # time was up before anything was known
        return {"instance": stem, "budget": budget, "method": method, "status": said.get("status"), "check": None}
    subject = f"{stem}.plan.json" if said["plan"] else path.name
    code, proved, spent = remat("check", "c.cert.json", subject, folder=folder)
    file = (folder / "c.cert.json").read_text()
    proofs = json.loads(file)["costs"]
    return {
        "instance": stem,
        "budget": budget,
        "method": method,
        "status": said["status"],
        "cost": said["cost"],
        "printed": {"bound": said["bound"], "any_order": said["bound_any_order"]},
        "proved": {"bound": proved.get("bound"), "any_order": proved.get("bound_any_order")},
        "infeasible": proved.get("infeasible"),
        "least_peak": proved.get("least_peak"),
        "check": code,
        "rows": [len(proof["rows"]) for proof in proofs],
        "cases": [len([step for step in proof["steps"] if "rows" in step]) for proof in proofs],
        "bytes": len(file),
        "solve_wall_s": round(solved, 2),
        "check_cpu_s": round(spent, 2),
        "notes": [note for note in said["notes"] if "does not prove" in note],
        "limit_s": seconds,
    }


KEY = ("instance", "budget", "method")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--method", action="append")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, budgets in INSTANCES.items():
            path = ROOT / "tests" / "data" / ("checkmate" if "linear" in name else "networks") / f"{name}.problem.json"
            if (asked.only and name not in asked.only) or not path.exists():
                continue
            for budget in budgets:
                for method in asked.method or ("auto", "milp"):
                    yield row(path, budget, method, asked.seconds, Path(folder))
