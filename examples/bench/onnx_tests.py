"""What remat says of the models of `onnx.backend.test`, about 2,000 that nobody here wrote, held against what they do.

Each model is asked for 100% of what it holds, for its least peak, for exactly that, with that plan known as where its
file stands, and for a byte less. Faults are:
a model that fits as it is and is refused; results in other bits than the original's in a session of the same options; a
least peak that is not reached when it is asked for, or that is undercut though it was called least; a refusal that says
no more is needed than was asked for; a crash. A row counts all models in one way within one limit. What became of each
is appended to the file of `--trials`, so that a run that was ended goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import remat_cli as remat

KINDS = "node", "simple", "pytorch-converted", "pytorch-operator"
WAYS = {"remat": {"runtime": "remat"}, "stock": {"runtime": "stock"}, "pieces": {"runtime": "remat", "pieces": "exact"}}
PER_PROCESS = 100  # models that one process tries


@cache
def tests() -> dict[str, Any]:
    warnings.filterwarnings("ignore")
    return {f"{kind}/{one.name}": one for kind in KINDS for one in load_model_tests(kind=kind)}


def model_of(test: Any) -> onnx.ModelProto:
    return test.model or onnx.load(Path(test.model_dir, "model.onnx"))


def feeds_of(test: Any, model: onnx.ModelProto) -> dict[str, Any]:
    stored = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in stored]
    if test.data_sets:
        return {name: array_of(given) for name, given in zip(names, test.data_sets[0][0], strict=False)}
    folder = Path(test.model_dir, "test_data_set_0")
    paths = [folder / f"input_{place}.pb" for place in range(len(names))]
    return {
        name: numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
        for name, path in zip(names, paths, strict=True)
        if path.exists()
    }


def array_of(given: Any) -> Any:
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    return np.asarray(given) if np.isscalar(given) else given


def stock(model: onnx.ModelProto, way: str) -> ort.InferenceSession:
    """The original in a session of the plan's own options."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if way != "stock":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def bits(results: Sequence[Any]) -> list[Any]:
    return [one.tobytes() if isinstance(one, np.ndarray) and one.dtype != object else str(one) for one in results]


class Trial:
    """One model in one way within one limit."""

    def __init__(self, name: str, way: str, limit: float) -> None:
        test = tests()[name]
        self.way, self.model = way, model_of(test)
        self.feeds = feeds_of(test, self.model)
        self.asked = {**WAYS[way], "time_limit": limit, "cache": False}
        self.faults: list[str] = []

    def run(self) -> dict[str, Any]:
        self.expected = self.run_original()
        try:
            whole = self.solve("100%", budget="100%")
        except remat.BadInput as refused:
            return {"outcome": "refused", "why": str(refused)[:160]}
        least = self.solve("the least peak", minimize="peak")
        if least is not None:
            self.ask_for(least)
        if self.expected is None:
            return {"outcome": "not run by onnxruntime", "faults": self.faults}
        for said, plan in (("100%", whole), ("the least peak", least)):
            if plan is not None and bits(remat.session(plan).run(None, dict(self.feeds))) != self.expected:
                self.faults.append(f"{said}: other bits than the original's")
        return {"outcome": "tried", "faults": self.faults}

    def run_original(self) -> list[Any] | None:
        """Its results in bits; None where onnxruntime has none, or others each time."""
        try:
            session = stock(self.model, self.way)
            once, again = (bits(session.run(None, dict(self.feeds))) for _ in range(2))
        except Exception as error:  # a RuntimeError: of an array that it cannot be given
            if not type(error).__module__.startswith("onnxruntime.") and type(error) is not RuntimeError:
                raise
            return None
        return once if once == again else None

    def solve(self, said: str, **asked: Any) -> Any:
        """The plan of a question that must have one."""
        try:
            return remat.solve(self.model, **asked, **self.asked)
        except (remat.Infeasible, remat.NoPlan) as refused:
            self.faults.append(f"{said}: {type(refused).__name__} {str(refused)[:200]}")
            return None

    def ask_for(self, least: Any) -> None:
        self.solve("exactly the least peak", budget=least.budget, known=[least])
        if (below := least.budget - 1) < 0:
            return
        try:
            found = remat.solve(self.model, budget=below, **self.asked)
        except (remat.Infeasible, remat.NoPlan) as refused:
            if refused.least_peak is not None and refused.least_peak <= below:
                self.faults.append(f"a byte less: {refused} though {refused.least_peak} bytes are said to be enough")
        else:
            if least.status == "optimal":
                self.faults.append(f"the least peak is {found.peak}, and {least.budget} was called least")


def try_one(name: str, way: str, limit: float) -> dict[str, Any]:
    warnings.filterwarnings("ignore")
    begun = process_time()
    found = Trial(name, way, limit).run()
    return {**found, "seconds": round(process_time() - begun, 2)}


def tried(jobs: Sequence[tuple[str, str, float]]) -> Iterator[dict[str, Any]]:
    """A row for each; what a process dies of is its job's fault."""
    waiting = list(jobs)
    while waiting:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            for job in waiting[:PER_PROCESS]:
                waiting.remove(job)
                future = pool.submit(try_one, *job)
                error = future.exception()
                row = {"outcome": "crash", "faults": [f"{type(error).__name__}: {error}"[:300]]}
                yield {"model": job[0], "way": job[1], "limit": job[2], **(row if error else future.result())}
                if isinstance(error, BrokenProcessPool):
                    break


KEY = ("way", "limit")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=Path, required=True, help="a file, a line for each model, way and limit")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--limits", default="1", help="seconds, one or several")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--only", default="", help="models whose names hold this")
    parser.add_argument("--counted", action="store_true", help="count what was tried, and try no more")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    known = [json.loads(line) for line in asked.trials.read_text().splitlines()] if asked.trials.exists() else []
    done = {(row["model"], row["way"], row["limit"]) for row in known}
    names = [name for name in sorted(tests()) if asked.only in name][asked.first :: asked.every]
    limits = [float(limit) for limit in asked.limits.split(",")]
    jobs = [(name, way, limit) for limit in limits for name in names for way in asked.ways.split(",")]
    with asked.trials.open("a") as out:
        for row in tried([job for job in jobs if not asked.counted and job not in done]):
            out.write(json.dumps(row) + "\n")
            out.flush()
            known.append(row)
    for way in asked.ways.split(","):
        for limit in limits:
            yield counted(way, limit, [row for row in known if (row["way"], row["limit"]) == (way, limit)])


def counted(way: str, limit: float, trials: Sequence[dict[str, Any]]) -> dict[str, Any]:
    reasons = Counter(re.sub(r"'[^']*'|\d+", "...", row["why"])[:80] for row in trials if "why" in row)
    return {
        "way": way,
        "limit": limit,
        "models": len(trials),
        "outcomes": dict(Counter(row["outcome"] for row in trials)),
        "faults": [row for row in trials if row.get("faults")],
        "refused": dict(reasons.most_common(12)),
        "processor_seconds": round(sum(row.get("seconds", 0) for row in trials)),
    }
