"""What kernels take beside the session's allocator, against what a process is seen to hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from remat_cli.ingest import graph_of
from remat_cli.model import semantics
from remat_cli.model.problem_of import problem_of
from remat_cli.model.semantics import lost_to_granules
from tests.sampling import few

MANY, NEAR = 4_000_000, 3_000_000  # indices; bytes that a process takes for the runtime itself
HELD = """
import sys
import numpy as np
from onnxruntime import InferenceSession, SessionOptions
from remat_cli.checking.weight import resident_now, resident_peak

options = SessionOptions()
options.enable_cpu_mem_arena = False
session = InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
feeds = {given.name: np.zeros(given.shape, types[given.type]) for given in session.get_inputs()}
for array in feeds.values():
    array += 0  # in memory
before = resident_now()
for _ in range(int(sys.argv[2])):
    results = session.run(None, feeds)
print(resident_peak() - before - sum(result.nbytes for result in results))
"""
CASES: list[tuple[str, list[int], list[int], list[int], dict[str, Any]]] = [  # data, indices, updates
    ("ScatterElements", [MANY], [MANY], [MANY], {"reduction": "add"}),
    ("ScatterND", [MANY], [MANY, 1], [MANY], {}),
    ("ScatterND", [8, MANY // 8], [MANY // 16, 2], [MANY // 16], {}),
    ("GatherND", [MANY], [MANY, 1], [], {}),
    ("GatherElements", [MANY], [MANY], [], {}),
]


@pytest.mark.parametrize(
    ("kind", "data", "indices", "updates", "attributes"), few(CASES, 1, several=True), ids=lambda each: str(each)
)
def test_a_process_holds_it(
    tmp_path: Path, kind: str, data: list[int], indices: list[int], updates: list[int], attributes: dict[str, Any]
) -> None:
    given = {"data": data, "indices": indices, **({"updates": updates} if updates else {})}
    types = {"indices": TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), s) for name, s in given.items()]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, data if updates else [MANY])
    graph = helper.make_graph([helper.make_node(kind, [*given], ["out"], name="it", **attributes)], "g", inputs, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    run = subprocess.run(
        [sys.executable, "-c", HELD, str(tmp_path / "m.onnx"), "1"], capture_output=True, text=True, check=True
    )
    named = problem_of(graph_of(model, tmp_path / "m.onnx"), {"it": (1, 0)})
    assert abs(int(run.stdout) - named.aside) <= NEAR


@pytest.mark.slow
def test_what_is_not_given_back_is_beside_the_rest(tmp_path: Path) -> None:
    """A step with two poolings, at a batch where the copy of the one is kept and that of the other mapped anew."""
    inputs = [helper.make_tensor_value_info("data", TensorProto.FLOAT, [8])]
    nodes = []
    for number, many in enumerate((MANY, 5_000_000)):
        names = f"indices{number}", f"updates{number}"
        inputs.append(helper.make_tensor_value_info(names[0], TensorProto.INT64, [many]))
        inputs.append(helper.make_tensor_value_info(names[1], TensorProto.FLOAT, [many]))
        nodes.append(helper.make_node("ScatterElements", ["data", *names], [f"out{number}"], f"it{number}"))
    outputs = [helper.make_tensor_value_info(f"out{number}", TensorProto.FLOAT, [8]) for number in range(2)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    run = [sys.executable, "-c", HELD, str(tmp_path / "m.onnx"), "3"]
    held = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    named = problem_of(graph_of(model, tmp_path / "m.onnx"), {"it0": (1, 0), "it1": (1, 0)})
    assert named.aside == 8 * MANY + 8 * 5_000_000
    assert abs(held - named.aside) <= NEAR


def test_a_device_has_none_of_it() -> None:
    op = graph_of(_scattered(), Path("m.onnx")).ops[0]
    assert semantics.aside(op, {"indices": (7, 3)}, "cpu") == 8 * 7 * 3
    assert semantics.aside(op, {"indices": (7, 3)}, "cuda") == 0


def test_inputs_on_a_device_take_whole_granules() -> None:
    """As an H100's driver was seen to give 150 inputs of GPT-2: 562,036,736 bytes for 497,824,768."""
    assert lost_to_granules([4, 1 << 20, (1 << 21) + 4, 1 << 22]) == (1 << 20) + (1 << 21) - 4
    graph = graph_of(_large_input(), Path("m.onnx"))
    beside = [problem_of(graph, {"it": (1, 0)}, provider).aside for provider in ("cpu", "cuda")]
    assert beside == [0, (1 << 21) - 4 * 300_000]


def _large_input() -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [300_000]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"], "it")], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _scattered() -> onnx.ModelProto:
    names = {"data": TensorProto.FLOAT, "indices": TensorProto.INT64, "updates": TensorProto.FLOAT}
    inputs = [helper.make_tensor_value_info(name, kind, [7, 3]) for name, kind in names.items()]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [7, 3])
    graph = helper.make_graph([helper.make_node("ScatterElements", [*names], ["out"])], "g", inputs, [out])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
