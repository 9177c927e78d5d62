"""Are results the same in a default session? Random models of what optimizers look for, copied at random.

For each model a random legal order with repeats, rewritten for a default session; both run twice under default options.
`same`: whether all outputs have the bits of the original's. `without`: the same where optimizers are not held to the
original's kernels, to show that the models are not harmless. `once`: how many ops had to be run once for that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime

from remat_cli.model.sessions import DEFAULT
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.measured import more_once, run_once
from remat_cli.planning.stock.rewriting import Manner, rewrite_robustly
from remat_cli.planning.stock.same_kernels import rewrite_surely
from remat_cli.planning.subjects.subject import Subject
from remat_cli.rewrite import Rewritten
from solvers.plan import Plan, lower
from solvers.reductions.views import reduced
from tests.remat_cli.fusing_models import fusing_model
from tests.remat_cli.rewrite.plans import random_order


def planned(subject: Subject, seed: int, share: float) -> Plan:
    """A random order of the kernels that the session runs."""
    smaller = reduced(subject.problem)
    return lower(subject.problem, smaller.expand(random_order(smaller.problem, seed, share)))


def kept(subject: Subject, seed: int, share: float) -> tuple[Rewritten, Rewritten, int]:
    """The model as it is made, as it would be made without looking, and how many ops had to be run once."""
    plan = planned(subject, seed, share)
    plain = rewrite_robustly(subject.graph, subject.problem, plan, Manner(subject.launch))
    once: set[str] = set()
    while (model := rewrite_surely(subject, plan)).astray:
        once = more_once(subject, model.astray, once)
        subject = run_once(subject, once)
        plan = planned(subject, seed, share)
    return model, plain, len(once)


def by_default(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[list[Any]] | None:
    """The results of two runs; None if the session cannot be made."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
        return None
    return [session.run(None, feeds) for _ in range(2)]


def same(before: list[list[Any]] | None, after: list[list[Any]] | None) -> bool:
    if before is None or after is None:
        return False
    pairs = [pair for runs in zip(before, after, strict=True) for pair in zip(*runs, strict=True)]
    return all(np.array_equal(old, new, equal_nan=True) for old, new in pairs)


def tried(seed: int) -> dict[str, Any]:
    share = (0.05, 0.1, 0.3)[seed % 3]
    given = fusing_model(seed)
    subject = load_subject(given, None, {}, DEFAULT)
    model, plain, once = kept(subject, seed, share)
    feeds = feeds_of(subject.graph, ops_of(subject.graph), seed)
    before = by_default(given, feeds)
    assert before is not None
    return {
        "seed": seed,
        "ops": len(subject.nodes),
        "copies": model.clones,
        "same": same(before, by_default(model.model, feeds)),
        "without": same(before, by_default(plain.model, feeds)),
        "once": once,
    }


KEY = ("seed",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    yield from map(tried, range(asked.first, asked.first + asked.count))


def conclude(known: list[dict[str, Any]]) -> None:
    ops, copies = (sum(row[what] for row in known) for what in ("ops", "copies"))
    print(f"{len(known)} models of {ops} ops, {copies} copies; bits differ in {sum(not row['same'] for row in known)},")
    print(f"and would in {sum(not row['without'] for row in known)} without the check;", end=" ")
    print(f"ops had to be run once in {sum(row['once'] > 0 for row in known)}.")
