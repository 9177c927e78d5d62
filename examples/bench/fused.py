"""Fused first: has the model that onnxruntime optimized beforehand the default session's bits, and its speed?

Each row is a training graph. `bits`: by level, whether the optimized file in the strict session gives the bits of a
session of that level on the file as it stands. `off`, `same`: of a plan at SHARE of what the optimized file holds,
measured over predicted, and whether its bits are the optimized file's. `wall`, `cpu`: the optimized file in the strict
session against the file in a default session, runs taking turns on one thread: the median of the ratios of ROUNDS
neighbours and the quartiles, of wall time and of the process's own processor time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime

import remat_cli as remat
from profiles.strict import strict_options
from remat_cli.actions.optimizing import optimize_file
from remat_cli.errors import Infeasible, Mismatch, NoPlan
from remat_cli.ingest import ingest
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.runtime.optimized import level_named

DATA = Path(__file__).parents[2] / "tests" / "data"
LEVELS = ("basic", "extended", "all")
SHARE, SECONDS, ROUNDS = "80%", 15.0, 60
NETWORKS = {
    "mlp": "mlp --batch 256 --hidden 512",
    "cnn": "cnn --batch 8",
    "vgg16": "vgg16 --batch 1 --image 64 --classes 10",
    "mobilenet-v2": "mobilenet-v2 --batch 1 --image 96 --classes 10",
    "resnet18": "resnet18 --batch 2 --image 64 --classes 10",
    "unet": "unet --batch 1 --image 64",
    "gpt2": "gpt2 --batch 2 --layers 2 --seq 64 --hidden 128 --heads 4 --vocabulary 500",
    "bert": "bert-base --batch 2 --layers 2 --seq 64 --hidden 128 --heads 4 --vocabulary 500",
    "vit": "vit-b32 --batch 2 --layers 2 --image 96 --hidden 128 --heads 4 --classes 10",
}
EXPORTED = ("torch_mlp", "torch_cnn", "torch_gpt2_eager")


def graphs(folder: Path) -> Iterator[tuple[str, Path]]:
    command = str(Path(sys.executable).with_name("remat"))
    for name, said in NETWORKS.items():
        forward, train = folder / f"{name}.onnx", folder / f"{name}.train.onnx"
        subprocess.run([command, "zoo", *said.split(), "-o", str(forward), "-q"], check=True)
        subprocess.run([command, "grad", str(forward), "-o", str(train), "-q"], check=True)
        yield name, train
    for name in EXPORTED:
        (folder / f"{name}.onnx").write_bytes((DATA / f"{name}.onnx").read_bytes())
        yield name, folder / f"{name}.onnx"


def session(path: Path, options: Any) -> Any:
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


def by_level(path: Path, level: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level_named(level)
    return session(path, options)


def same(before: Any, after: Any, feeds: dict[str, Any]) -> bool:
    pairs = zip(before.run(None, feeds), after.run(None, feeds), strict=True)
    return all(np.array_equal(old, new, equal_nan=True) for old, new in pairs)


def raced(usual: Any, fused: Any, feeds: dict[str, Any]) -> dict[str, list[float]]:
    walls, cpus = [], []
    for number in range(ROUNDS + 3):
        took = []
        for one in (usual, fused) if number % 2 else (fused, usual):
            wall, cpu = time.perf_counter_ns(), time.process_time_ns()
            one.run(None, feeds)
            took.append((time.perf_counter_ns() - wall, time.process_time_ns() - cpu))
        (wall, cpu), (wall_fused, cpu_fused) = took if number % 2 else reversed(took)
        walls.append(wall_fused / wall)
        cpus.append(cpu_fused / max(cpu, 1))
    return {
        name: [round(one, 4) for one in quantiles(found[3:], n=4)] for name, found in (("wall", walls), ("cpu", cpus))
    }


def planned(path: Path) -> dict[str, Any]:
    costs = remat.profile(path, threads=1, time_limit=8.0)
    try:
        plan = remat.solve(path, budget=SHARE, costs=costs, time_limit=SECONDS, cache=False)
        report = remat.verify(plan)
    except (Infeasible, NoPlan) as error:
        return {"plan": str(error).replace(f"{path.parent}/", "")[:200]}
    except Mismatch as error:
        report = error.report
    mode = report.report.strict
    off = round(mode.after.first / report.promise.live - 1, 5)
    return {"overhead": round(plan.overhead, 4), "off": off, "same": not mode.differs and not mode.failed}


def row(name: str, path: Path) -> dict[str, Any]:
    graph = ingest(path)
    feeds = feeds_of(graph, ops_of(graph))
    bits = {
        level: same(by_level(path, level), session(optimize_file(path, level), strict_options()), feeds)
        for level in LEVELS
    }
    fused = optimize_file(path, "all")
    times = raced(by_level(path, "all"), session(fused, strict_options()), feeds)
    ops = [len(graph.ops), len(ingest(fused).ops)]
    return {"graph": name, "ops": ops, "bits": bits, **times, **planned(fused)}


KEY = ("graph",)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        for name, path in graphs(Path(folder)):
            yield row(name, path)
