"""Outputs written over inputs on the real runtime: the same bytes as in buffers of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from remat_cli.errors import Usage
from remat_cli.model.semantics import ELEMENTWISE
from remat_cli.runtime.in_place import in_place, run_in_place
from remat_cli.runtime.session import session_of

SHAPE = [7, 60_013]  # enough for kernels to use all threads
BOTH = {"Add", "And", "Div", "Max", "Mean", "Min", "Mul", "Or", "Pow", "Sub", "Sum", "Xor"}
LOGIC = {"And", "Not", "Or", "Xor"}


def session(kind: str, shapes: list[list[int]], types: list[int], **attributes: Any) -> Any:
    inputs = [helper.make_tensor_value_info(f"x{k}", t, s) for k, (t, s) in enumerate(zip(types, shapes, strict=True))]
    node = helper.make_node(kind, [value.name for value in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], "op", inputs, [helper.make_tensor_value_info("y", types[-1], SHAPE)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return session_of(model.SerializeToString(), Path())


def values(shapes: list[list[int]], types: list[int]) -> dict[str, np.ndarray]:
    random, found = np.random.default_rng(0), {}
    for k, (kind, shape) in enumerate(zip(types, shapes, strict=True)):
        drawn = np.asarray(random.random(shape) + 0.1)
        found[f"x{k}"] = np.asarray(drawn > 0.6) if kind == TensorProto.BOOL else drawn.astype(np.float32)
    return found


def cases() -> list[tuple[str, int, bool]]:
    found = []
    for kind in sorted(ELEMENTWISE):
        places = (1, 2) if kind == "Where" else (0, 1) if kind in BOTH else (0,)
        found += [(kind, place, one) for place in places for one in (False, True) if kind in BOTH or not one]
    return found


@pytest.mark.parametrize(("kind", "place", "broadcast"), cases())
def test_each_op_may_write_over_what_it_reads(kind: str, place: int, broadcast: bool) -> None:
    """`broadcast`: the other input is a single number."""
    count = 3 if kind == "Where" else 2 if kind in BOTH else 1
    types = [
        TensorProto.BOOL if kind in LOGIC or (kind == "Where" and not k) else TensorProto.FLOAT for k in range(count)
    ]
    shapes = [SHAPE if k == place or not broadcast else [] for k in range(count)]
    made = session(kind, shapes, types, **({"to": TensorProto.FLOAT} if kind == "Cast" else {}))
    apart = made.run(None, values(shapes, types))[0]
    feeds = values(shapes, types)
    over = run_in_place(made, feeds, {"y": f"x{place}"})["y"]
    assert over is feeds[f"x{place}"]
    assert over.tobytes() == apart.tobytes()


def test_a_session_whose_runs_write_over_what_they_are_given() -> None:
    made = in_place(session("Add", [SHAPE, []], [TensorProto.FLOAT] * 2), {"y": "x0"})
    feeds = {"x0": np.zeros(SHAPE, np.float32), "x1": np.float32(1)}
    for turn in range(1, 4):
        (found,) = made.run(["y"], feeds)
        assert found is feeds["x0"]
        assert (found == turn).all()


def test_arrays_that_cannot_be_written_over_are_refused() -> None:
    made = session("Add", [SHAPE, SHAPE], [TensorProto.FLOAT] * 2)
    one = np.zeros(SHAPE, np.float32)
    with pytest.raises(Usage, match="'x0' and 'x1' are one array"):
        run_in_place(made, {"x0": one, "x1": one}, {"y": "x0"})
    read_only = one.copy()
    read_only.flags.writeable = False
    with pytest.raises(Usage, match="'x0' is updated in place"):
        run_in_place(made, {"x0": read_only, "x1": one}, {"y": "x0"})
    with pytest.raises(Usage, match="'x0' is updated in place"):
        run_in_place(made, {"x0": np.zeros(SHAPE[::-1], np.float32).T, "x1": one}, {"y": "x0"})
    with pytest.raises(Usage, match="'x0' is updated in place"):
        run_in_place(made, {"x0": np.zeros(SHAPE, np.dtype(np.float32).newbyteorder()), "x1": one}, {"y": "x0"})
    with pytest.raises(Usage, match="not as list"):
        run_in_place(made, {"x0": [[0.0]], "x1": one}, {"y": "x0"})
    wide = np.zeros((2, *SHAPE), np.float32)
    with pytest.raises(Usage, match="are one array"):
        run_in_place(made, {"x0": wide.reshape(-1)[5 : 5 + one.size].reshape(SHAPE), "x1": wide[0]}, {"y": "x0"})
    assert (run_in_place(made, {"x0": wide[0], "x1": wide[1] + 1}, {"y": "x0"})["y"] == 1).all()  # side by side


@pytest.mark.parametrize("given", [np.zeros(SHAPE), np.zeros(SHAPE, np.float16), np.zeros(SHAPE[1:], np.float32)])
def test_an_array_of_another_type_or_shape_is_refused_before_anything_is_written(given: np.ndarray) -> None:
    made = in_place(session("Add", [SHAPE, []], [TensorProto.FLOAT] * 2), {"y": "x0"})
    with pytest.raises(Exception, match="input"):
        made.run(None, {"x0": given, "x1": np.float32(1)})
    assert not given.any()


def test_names_that_the_model_does_not_have_are_refused() -> None:
    made = in_place(session("Add", [SHAPE, []], [TensorProto.FLOAT] * 2), {"y": "x0"})
    feeds = {"x0": np.zeros(SHAPE, np.float32), "x1": np.float32(1)}
    for names, wrong, says in (
        (["z"], feeds, "no 'z'"),
        (None, {**feeds, "w": 1}, "no 'w'"),
        (None, {"x1": 1}, "'x0'"),
    ):
        with pytest.raises(Usage, match=says):
            made.run(names, wrong)
    assert not feeds["x0"].any()


def test_other_inputs_may_come_in_any_form() -> None:
    """In the other byte order, and from the end: what is not updated is copied where it must be."""
    made = in_place(session("Add", [SHAPE, SHAPE], [TensorProto.FLOAT] * 2), {"y": "x0"})
    other = np.arange(SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
    for form in (other.astype(np.dtype(np.float32).newbyteorder()), other[::-1, ::-1]):
        (found,) = made.run(None, {"x0": np.zeros(SHAPE, np.float32), "x1": form})
        assert (found == form.astype(np.float32)).all()


def test_runs_may_write_into_new_arrays_instead() -> None:
    made = in_place(session("Add", [SHAPE, []], [TensorProto.FLOAT] * 2), {"y": "x0"}, apart=True)
    feeds = {"x0": np.zeros(SHAPE, np.float32), "x1": np.float32(1)}
    first, second = (made.run(None, feeds)[0] for _ in range(2))
    assert (first == 1).all()
    assert not np.shares_memory(first, second)
    assert not feeds["x0"].any()
