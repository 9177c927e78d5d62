"""The graphs of `search.py`, and the budgets at which they are asked: written once, read by every version that is run.

Half of them were never named in a commit before they were chosen. Budgets are shares of what the ops need in the order
given, or so much above the least peak that a fixed amount of work finds (`find_lean`), which stands in the table.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from auto import layered

from remat_cli.formats import problemfile
from remat_cli.model.problem_of import Named
from solvers.clock import Clock
from solvers.methods.auto.leanest import find_lean
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import measure
from solvers.problem import Limits, Problem

ROOT = Path(__file__).parents[2]
DRAWN: dict[str, Callable[[], Problem]] = {
    "layered-100": partial(layered, 100, 236, 1),
    "layered-500": partial(layered, 500, 2461, 1),
    "layered-1000": partial(layered, 1000, 5857, 1),
    "layered-300-new": partial(layered, 300, 900, 47),
    "layered-800-new": partial(layered, 800, 2400, 48),
    "dense-1000": partial(layered, 1000, 12_000, 2),
    "dense-10000": partial(layered, 10_000, 50_000, 3),
}
READ = ("networks/unet", "networks/gpt2", "networks/segnet", "networks/mobilenet", "networks/resnet50_fused")
ZOO = {  # what `remat zoo` is asked; then `grad`, and costs as `profile --estimate v100` says
    "mobilenet-v2": ("mobilenet-v2", "--batch", "32"),
    "bert-2": ("bert-base", "--layers", "2", "--batch", "8", "--seq", "128"),
    "densenet121": ("densenet121", "--batch", "16"),
    "small-unet": ("unet", "--upsample", "nearest", "--image", "32", "--width", "8", "--layers", "2", "--batch", "1"),
    "efficientnet-b0": ("efficientnet-b0", "--batch", "8"),
    "regnety-400mf": ("regnety-400mf", "--batch", "16"),
    "vovnet39": ("vovnet39", "--batch", "8"),
    "resnest50": ("resnest50", "--batch", "8"),
    "albert-6": ("albert-base", "--layers", "6", "--batch", "4", "--seq", "128"),
    "llama-4": ("llama-1b", "--layers", "4", "--batch", "2", "--seq", "256", "--vocabulary", "32000"),
    "convnext-large": ("convnext-large", "--batch", "8"),
    "resnet1001": ("resnet1001", "--batch", "32"),
}
NEW = {"layered-300-new", "layered-800-new", "dense-1000", "dense-10000"} | set(list(ZOO)[4:])  # never named before


def write(folder: Path, names: list[str] | None = None) -> None:
    """The problem files, and `graphs.json` with what each budget is in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "graphs.json"
    known: dict[str, Any] = json.loads(table.read_text()) if table.exists() else {}
    for name in names or [*READ, *DRAWN, *ZOO]:
        path = folder / f"{name.split('/')[-1]}.problem.json"
        if not path.exists():
            _write_problem(name, path)
        known[path.name.split(".")[0]] = _budgets(problemfile.read(path).problem)
        table.write_text(json.dumps(known, indent=1) + "\n")
        print(path.name, known[path.name.split(".")[0]], flush=True)


def _write_problem(name: str, path: Path) -> None:
    if name in DRAWN:
        problem = DRAWN[name]()
        named = Named(problem, _names("op", len(problem.nodes)), _names("value", len(problem.sizes)))
        problemfile.write(named, path)
    elif name in READ:
        path.write_bytes((ROOT / "tests" / "data" / f"{name}.problem.json").read_bytes())
    else:
        model, train = path.with_suffix(".onnx"), path.with_name(f"{name}.train.onnx")
        for asked in (
            ("zoo", *ZOO[name], "--weights", "inputs", "-o", model),
            ("grad", model, "-o", train),
            ("profile", train, "--estimate", "v100"),
            ("problem", train, "-o", path),
        ):
            subprocess.run([sys.executable, "-m", "remat_cli", *map(str, asked), "-q"], check=True)
        for left in (model, train, train.with_name(f"{name}.train.costs.yaml")):
            left.unlink()


def _names(kind: str, count: int) -> tuple[str, ...]:
    return tuple(f"{kind}{index}" for index in range(count))


def _budgets(problem: Problem) -> dict[str, int]:
    arrays = arrays_of(problem)
    plain = measure(arrays, range(len(problem.nodes)))[1]
    least = measure(arrays, find_lean(problem, Limits(Clock(300.0))).order)[1]
    shares = {"80%": plain * 0.8, "60%": plain * 0.6, "least+20%": least * 1.2, "least+5%": least * 1.05}
    return {"ops": len(problem.nodes), "plain": plain, "least": least, **{key: int(at) for key, at in shares.items()}}
