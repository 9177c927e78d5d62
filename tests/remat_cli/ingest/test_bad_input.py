"""What cannot be ingested is refused with the right exit code and one line that says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from remat_cli.errors import RematError
from remat_cli.ingest import ingest
from remat_cli.model.problem_of import problem_of
from solvers.faults import faults
from tests.remat_cli.ingest.models import model, node, save, value

X = value("x", 2, 3)


def external(location: str, **entries: str) -> onnx.ModelProto:
    made = model([node("Add", ["x", "w"], ["y"])], [X], ["y"])
    tensor = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2, 3])
    tensor.data_location = TensorProto.EXTERNAL
    for key, content in {"location": location, "length": "24", **entries}.items():
        tensor.external_data.add(key=key, value=content)
    return made


def with_bytes(made: onnx.ModelProto, name: str, count: int) -> Callable[[Path], Path]:
    def put(folder: Path) -> Path:
        (folder / name).write_bytes(b"\0" * count)
        return save(made, folder)

    return put


def escaping_link(folder: Path) -> Path:
    outside = folder / "outside.bin"
    outside.write_bytes(b"\0" * 24)
    inner = folder / "inner"
    inner.mkdir()
    (inner / "w.bin").symlink_to(outside)
    return save(external("w.bin"), inner)


def content(data: bytes) -> Callable[[Path], Path]:
    def put(folder: Path) -> Path:
        path = folder / "m.onnx"
        path.write_bytes(data)
        return path

    return put


GOOD = model([node("Relu", ["x"], ["y"], name="r")], [X], ["y"])
CYCLE = [node("Add", ["x", "c"], ["a"], name="one"), node("Exp", ["a"], ["b"], name="two"), node("Neg", ["b"], ["c"])]
TWO_FUNCTIONS = helper.make_function(
    "f", "F", ["p"], ["q"], [node("G", ["p"], ["q"], domain="f")], [helper.make_opsetid("f", 1)]
)
RECURSIVE = helper.make_function(
    "f", "G", ["p"], ["q"], [node("F", ["p"], ["q"], domain="f")], [helper.make_opsetid("f", 1)]
)

# what: (code, words of the message, the file)
CASES: dict[str, tuple[int, tuple[str, ...], onnx.ModelProto | Callable[[Path], Path]]] = {
    "no such file": (3, ("cannot read", "No such file"), lambda folder: folder / "m.onnx"),
    "a folder": (3, ("cannot read", "directory"), lambda folder: folder),
    "an empty file": (3, ("is not an ONNX model",), content(b"")),
    "not ONNX": (3, ("is not an ONNX model", "zip archive"), content(b"PK\x03\x04 this is something else")),
    "truncated": (3, ("truncated",), content(GOOD.SerializeToString()[:-20])),
    "truncated before the opsets": (
        3,
        ("opset", "truncated"),
        content(onnx.ModelProto(graph=GOOD.graph).SerializeToString()),
    ),
    "too old an opset": (
        3,
        ("opset 1 cannot be upgraded", "Pad", "export it anew"),
        model([node("Pad", ["x"], ["y"])], [X], ["y"], opset=1),
    ),
    "too new an opset": (3, ("opset 999", "newer onnx"), model([node("Relu", ["x"], ["y"])], [X], ["y"], opset=999)),
    "no nodes": (3, ("no ops",), model([], [X], ["x"])),
    "a cycle": (3, ("cycle", "'one'", "'two'", "'c'"), model(CYCLE, [X], ["b"])),
    "a missing input": (3, ("Relu 'r'", "'nowhere'"), model([node("Relu", ["nowhere"], ["y"], name="r")], [X], ["y"])),
    "a missing output": (3, ("output 'z'",), model([node("Relu", ["x"], ["y"])], [X], ["z"])),
    "a value written twice": (
        3,
        ("'y'", "Relu 'r'", "Exp 'e'"),
        model([node("Relu", ["x"], ["y"], name="r"), node("Exp", ["x"], ["y"], name="e")], [X], ["y"]),
    ),
    "an input written over": (3, ("'x'", "input"), model([node("Relu", ["x"], ["x"], name="r")], [X], ["x"])),
    "two inputs of one name": (3, ("two inputs", "'x'"), model([node("Relu", ["x"], ["y"])], [X, X], ["y"])),
    "a symbolic dimension": (
        3,
        ("'batch'", "'x'", "--dim batch=N"),
        model([node("Relu", ["x"], ["y"])], [value("x", "batch", 3)], ["y"]),
    ),
    "an anonymous dimension": (
        3,
        ("dimension 0", "'x'", "--dim x:0=N"),
        model([node("Relu", ["x"], ["y"])], [value("x", None, 3)], ["y"]),
    ),
    "no shape at all": (
        3,
        ("'x'", "no shape"),
        model([node("Relu", ["x"], ["y"])], [helper.make_tensor_value_info("x", 1, None)], ["y"]),
    ),
    "a sequence": (
        3,
        ("'x'", "sequence"),
        model(
            [node("SequenceAt", ["x", "i"], ["y"])],
            [helper.make_tensor_sequence_value_info("x", 1, [2]), value("i", dtype=7)],
            ["y"],
        ),
    ),
    "a sequence inside": (
        3,
        ("'s'", "SequenceConstruct", "sequence", "tensors only"),
        model(
            [node("SequenceConstruct", ["x"], ["s"]), node("SequenceAt", ["s", "i"], ["y"])],
            [X, value("i", dtype=7)],
            ["y"],
        ),
    ),
    "a size that depends on data": (
        3,
        ("'y'", "NonZero 'nz'", "--dim y:1=N"),
        model([node("NonZero", ["x"], ["y"], name="nz")], [X], ["y"]),
    ),
    "a shape that is fed": (
        3,
        ("'y'", "Reshape 'r'", "--dim y:0=N"),
        model([node("Reshape", ["x", "s"], ["y"], name="r")], [X, value("s", 2, dtype=7)], ["y"]),
    ),
    "an op nobody knows": (
        3,
        ("'y'", "mine.Strange 'r'", "value_info"),
        model([node("Strange", ["x"], ["y"], name="r", domain="mine")], [X], ["y"]),
    ),
    "shapes that do not fit": (
        3,
        ("'y'", "MatMul 'r'"),
        model([node("MatMul", ["x", "x"], ["y"], name="r")], [X], ["y"]),
    ),
    "too few operands for a rule": (
        3,
        ("'y'", "ConvGrad 'r'", "input"),
        model([node("ConvGrad", ["x"], ["y"], name="r", domain="com.microsoft")], [X], ["y"]),
    ),
    "a tensor that is too short": (
        3,
        ("'s'",),
        model([node("Reshape", ["x", "s"], ["y"])], [X], ["y"]),
    ),
    "functions that call each other": (
        3,
        ("function",),
        model([node("F", ["x"], ["y"], domain="f")], [X], ["y"], functions=[TWO_FUNCTIONS, RECURSIVE]),
    ),
    "external data above the folder": (3, ("'w'", "'../w.bin'", "outside"), external("../w.bin")),
    "external data at an absolute place": (3, ("'/etc/passwd'", "outside"), external("/etc/passwd")),
    "external data on another drive": (3, ("outside",), external("C:\\w.bin")),
    "external data behind a link": (3, ("'w.bin'", "outside"), escaping_link),
    "external data that is missing": (3, ("'w'", "'w.bin'", "No such file"), external("w.bin")),
    "external data cut short": (3, ("24", "has 20", "truncated"), with_bytes(external("w.bin"), "w.bin", 20)),
    "external data with a strange offset": (
        3,
        ("'w'", "not a number"),
        with_bytes(external("w.bin", offset="x"), "w.bin", 24),
    ),
}
CASES["a tensor that is too short"][2].graph.initializer.add(name="s", data_type=7, dims=[2], int64_data=[1])


@pytest.mark.parametrize("code, words, source", CASES.values(), ids=CASES)
def test_bad_models(
    code: int, words: tuple[str, ...], source: onnx.ModelProto | Callable[[Path], Path], tmp_path: Path
) -> None:
    path = save(source, tmp_path) if isinstance(source, onnx.ModelProto) else source(tmp_path)
    with pytest.raises(RematError) as caught:
        ingest(path)
    message = str(caught.value)
    assert caught.value.code == code
    assert "\n" not in message
    assert str(path) in message
    for word in words:
        assert word in message


def test_dimensions_that_make_no_sense(tmp_path: Path) -> None:
    path = save(model([node("Relu", ["x"], ["y"])], [value("x", "batch", 3)], ["y"]), tmp_path)
    for dims, words in (
        ({"bath": 3}, "'batch'|bath"),
        ({"batch": 3, "bath": 3}, "'bath'.*batch"),
        ({"batch": 0}, "at least 1"),
        ({"batch": 3, "x:1": 4}, "fixed at 3"),
    ):
        with pytest.raises(RematError, match=words):
            ingest(path, dims)


@pytest.mark.parametrize("cut", np.linspace(0, 0.999, 40))
def test_a_file_cut_anywhere_is_refused(cut: float, data: Path, tmp_path: Path) -> None:
    whole = (data / "ort_mlp.onnx").read_bytes()
    path = tmp_path / "m.onnx"
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(RematError):
        ingest(path)


@pytest.mark.parametrize("seed", range(150))
def test_a_damaged_file_is_read_or_refused_but_nothing_else(seed: int, data: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    damaged = bytearray((data / "ort_mlp.onnx").read_bytes())
    for place in rng.integers(0, len(damaged), rng.choice([1, 2, 5])):
        damaged[place] = rng.integers(0, 256)
    path = tmp_path / "m.onnx"
    path.write_bytes(damaged)
    assert outcome(path) in ("refused in one line", "read, and fit to be scheduled")


def outcome(path: Path) -> str:
    try:
        graph = ingest(path)
    except RematError as error:
        return "refused in one line" if "\n" not in str(error) else str(error)
    found = list(faults(problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem))
    return found[0] if found else "read, and fit to be scheduled"
