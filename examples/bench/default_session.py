"""Are results the same in a default session? Random models of what optimizers look for, copied at random.

    python examples/bench/default_session.py [FIRST [COUNT]] > examples/bench/default_session.json

For each model a random legal order with repeats, rewritten for a default session; both run twice under default options.
`differ`: models some output of which has other bits. `without`: the same where optimizers are not held to the
original's kernels, to show that the models are not harmless. `once`: where ops had to be run once for that.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime

from remat_cli.model.sessions import DEFAULT
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.loading import given_subject
from remat_cli.planning.search.witness import more_once, run_once
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.same_kernels import rewrite_surely
from remat_cli.rewrite import Manner, Rewritten, rewrite
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
    plain = rewrite(subject.graph, subject.problem, plan, DEFAULT, Manner(subject.launch))
    once: set[str] = set()
    while (model := rewrite_surely(subject, plan, DEFAULT)).astray:
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
    subject = given_subject(given, None, {}, DEFAULT)
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


def main() -> None:
    first, count = (*map(int, sys.argv[1:]), *(0, 100)[len(sys.argv) - 1 :])
    rows = [tried(seed) for seed in range(first, first + count)]
    total = Counter(ops=sum(row["ops"] for row in rows), copies=sum(row["copies"] for row in rows))
    summary = {
        "onnxruntime": onnxruntime.__version__,
        "models": count,
        **total,
        "differ": [row["seed"] for row in rows if not row["same"]],
        "without": sum(not row["without"] for row in rows),
        "once": sum(row["once"] > 0 for row in rows),
    }
    print(json.dumps(summary | {"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
