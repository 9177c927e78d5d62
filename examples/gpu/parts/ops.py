"""What single ops do on the device: which write over their operand, and what they work in.

Invariant: each is told from the arena's own count, of a model that has the op between two others.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import yaml
from onnx import TensorProto, helper

from examples.gpu.parts.models import Bench, Failed, Model
from examples.gpu.parts.steps import kernels
from profiles.running import failures
from remat_cli.model.semantics import OVERWRITES

COUNT = 1 << 18  # numbers in the tensor that is watched
MORE = (
    "Sqrt",
    "Exp",
    "Neg",
    "Abs",
    "Erf",
    "Gelu",
    "Not",
    "Identity",
    "Reciprocal",
    "Log",
    "Softmax",
    "LogSoftmax",
    "Cast",
)
LEAST = 4096  # bytes of workspace that are worth a line


def in_place(bench: Bench) -> Iterator[dict[str, Any]]:
    """For each op that the table names, and for some that it does not: is its result where its operand was?"""
    table = OVERWRITES[bench.device]
    for kind in sorted({*table, *MORE}):
        content = probe(kind)
        if content is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "probe.onnx"
            path.write_bytes(content)
            try:
                ran, _ = kernels(path, bench.device)
            except failures() as error:
                yield {kind: {"table": kind in table, "failed": str(error)[:160]}}
                continue
        held = {kernel["name"]: int(kernel["mem_bytes_in_use"]) for kernel in ran if "mem_bytes_in_use" in kernel}
        where = {kernel["name"]: kernel["provider"] for kernel in ran}
        if "op" in held and "before" in held:
            yield {kind: {"table": kind in table, "in_place": held["op"] == held["before"], "provider": where["op"]}}


def probe(kind: str) -> bytes | None:
    """A model x, Neg, the op, Neg; None for an op that is not written so."""
    inputs, attributes, values = ["a"], {}, []
    result = TensorProto.FLOAT
    if kind == "Clip":
        inputs += ["low", "high"]
        values = [helper.make_tensor("low", 1, [], [-1.0]), helper.make_tensor("high", 1, [], [1.0])]
    elif kind == "Cast":
        attributes, result = {"to": TensorProto.INT32}, TensorProto.INT32
    elif kind == "ScatterND":
        inputs += ["at", "put"]
        values = [helper.make_tensor("at", 7, [1, 1], [0]), helper.make_tensor("put", 1, [1, 1 << 9], [1.0] * (1 << 9))]
    elif kind == "ScatterElements":
        inputs += ["at", "put"]
        values = [helper.make_tensor("at", 7, [1, 1], [0]), helper.make_tensor("put", 1, [1, 1], [1.0])]
    elif kind in ("Not", "BitCast", "TensorScatter"):
        return None
    shape = [1 << 9, COUNT >> 9]
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="before"),
        helper.make_node(kind, inputs, ["b"], name="op", **attributes),
        helper.make_node("Neg", ["b"], ["y"], name="after"),
    ]
    graph = helper.make_graph(
        nodes,
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", result, shape)],
        values,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return bytes(model.SerializeToString())


def workspace(bench: Bench) -> Iterator[dict[str, Any]]:
    """What ops work in, by the profile of each model that there is: the most for each kind of op."""
    for name in bench.names:
        try:
            costs = yaml.safe_load(Model(bench, name).costs().read_text())["ops"]
        except Failed as error:
            yield {name: {"failed": str(error)[:300]}}
            continue
        kinds = {op.name or op.output[0]: op.op_type for op in onnx.load(Model(bench, name).graph()).graph.node}
        most: dict[str, int] = defaultdict(int)
        for op, cost in costs.items():
            most[kinds.get(op, "?")] = max(most[kinds.get(op, "?")], int(cost["workspace"]))
        estimated = sorted(
            {
                f"{kinds.get(op, '?')}: {cost.get('note', '')}"
                for op, cost in costs.items()
                if cost["how"] == "estimated"
            }
        )
        said = {kind: size for kind, size in sorted(most.items(), key=lambda item: -item[1]) if size >= LEAST}
        yield {name: {"workspace": said, "not_measured": estimated[:8]}}
