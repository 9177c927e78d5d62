"""What a session holds by itself, as it is foretold from nodes and bytes; a process bears witness."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx

from remat_cli.checking.processes import Bench
from remat_cli.ingest import ingest, ingest_content
from remat_cli.model.problem_of import problem_of
from remat_cli.model.session_bytes import ADDED_BYTES, OWN_BYTES, SLOT_BYTES, session_bytes
from remat_cli.model.sessions import STRICT
from remat_cli.rewrite import rewrite
from solvers.schedule import baseline
from tests.remat_cli.random_models import random_model

OPS = 3000
SIZE = [4, 4]


def many(path: Path, seed: int) -> Path:
    """A file with thousands of small ops, each of values that were made shortly before."""
    drawn = random.Random(seed)
    values = ["x"]
    nodes = []
    for number in range(OPS):
        kind = drawn.choice(["Relu", "Tanh", "Neg", "Add", "Mul", "Sub", "Max"])
        reads = drawn.choices(values[-9:], k=2 if kind in ("Add", "Mul", "Sub", "Max") else 1)
        nodes.append(onnx.helper.make_node(kind, reads, [f"value_{number}"], name=f"op_{number}"))
        values.append(f"value_{number}")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, SIZE) for name in ("x", values[-1]))
    graph = onnx.helper.make_graph(nodes, "many", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_a_session_of_thousands_of_ops_holds_what_is_foretold(tmp_path: Path) -> None:
    path = many(tmp_path / "many.onnx", seed=1)
    said = session_bytes(ingest(path))
    with Bench({"x": np.ones(SIZE, np.float32)}, "cpu", 60.0) as bench:
        reply = bench.weigh(path, STRICT)
    assert reply.loaded is not None
    assert reply.loading is not None
    assert abs(said / reply.loaded - 1) < 0.15
    assert reply.loading >= reply.loaded


def test_ops_that_run_again_count_again(tmp_path: Path) -> None:
    graph = ingest(many(tmp_path / "many.onnx", seed=2))
    once = session_bytes(graph, range(OPS))
    again = session_bytes(graph, [*range(OPS), *range(OPS)])
    assert abs(again - once - (once - OWN_BYTES)) <= 1
    assert session_bytes(graph, [*range(OPS), 5]) - once > SLOT_BYTES
    assert OWN_BYTES + SLOT_BYTES * OPS < session_bytes(graph) < once  # the file tells no types


def test_ops_that_rewriting_adds_count_too() -> None:
    """Results that nobody reads are let go of by slices that the file does not have."""
    graph = ingest_content(random_model(3, 60).SerializeToString(), {})
    problem = problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem
    plan, _ = baseline(problem)
    made = rewrite(graph, problem, plan)
    added = len(made.model.graph.node) - len(plan.order())
    assert added > 0
    assert made.promise.itself == session_bytes(graph, plan.order()) + added * ADDED_BYTES
