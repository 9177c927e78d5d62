"""Weights that are let go of: the same bits as where all stay, and few of them in memory, by the kernel's own count."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.actions.session_writing import kept_of, weights_of
from remat_cli.formats import placesfile
from remat_cli.formats.weights import Weights
from remat_cli.onnx_graph.stored import put_apart
from remat_cli.runtime.c_session import c_options
from remat_cli.runtime.placed import library
from remat_cli.runtime.planned import PlannedSession
from solvers.placement.placed import Placement

pytestmark = pytest.mark.skipif(library() is None, reason="the allocator is for Linux alone")
LAYERS, WIDTH = 24, 512  # of 1 MB each
KEPT = 3 << 20


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A chain of products, whose weights lie in a file of their own; one of them is of 16 bits, and one a scalar."""
    rng = np.random.default_rng(0)
    stored = [(rng.standard_normal((WIDTH, WIDTH)) / 20).astype(np.float32) for _ in range(LAYERS)]
    held = [numpy_helper.from_array(array, f"weight {k}") for k, array in enumerate(stored)]
    held += [numpy_helper.from_array(np.ones(WIDTH, np.float16), "half"), numpy_helper.from_array(np.float32(2), "two")]
    nodes = [helper.make_node("MatMul", [f"x{k}", f"weight {k}"], [f"x{k + 1}"]) for k in range(LAYERS)]
    nodes += [
        helper.make_node("Cast", ["half"], ["whole"], to=TensorProto.FLOAT),
        helper.make_node("Add", [f"x{LAYERS}", "whole"], ["more"]),
        helper.make_node("Mul", ["more", "two"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, [4, WIDTH]) for name in ("x0", "y"))
    made = helper.make_model(
        helper.make_graph(nodes, "chain", [x], [y], held), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    put_apart(made, tmp_path, "chain.data")
    onnx.save(made, tmp_path / "chain.onnx")
    return tmp_path / "chain.onnx"


def in_memory(file: Path) -> int:
    """Bytes of the file that this process has in memory."""
    found, here = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        fields = line.split()
        if "-" in fields[0]:
            here = line.endswith(str(file))
        elif here and fields[0] == "Rss:":
            found += 1024 * int(fields[1])
    return found


def weights(model: Path) -> Weights:
    found = weights_of(onnx.load(model, load_external_data=False), model.parent, KEPT)
    assert found is not None
    return found


def ran(model: Path, weights: Weights | None) -> tuple[bytes, int]:
    """The result of a third run, and how much of the weights is in memory after it."""
    session = PlannedSession(str(model), None, "cpu", c_options(1), weights)
    feeds = {"x0": np.linspace(-1, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)}
    for _ in range(3):
        (found,) = session.run(None, feeds)
    return found.tobytes(), in_memory(model.with_name("chain.data"))


def test_the_bits_are_the_same_and_few_weights_are_in_memory(model: Path) -> None:
    expected, all_of_it = ran(model, None)
    found, few = ran(model, weights(model))
    assert found == expected
    assert all_of_it >= LAYERS << 20
    assert few <= KEPT + (2 << 20)  # beside those of an op, and what the kernel reads ahead


def test_the_table_goes_through_json_and_a_file_of_places(model: Path) -> None:
    told = weights(model)
    assert [one.name for one in told.stored] == [*(f"weight {k}" for k in range(LAYERS)), "half"]
    assert Weights.of(json.loads(json.dumps(astuple(told)))) == told
    path, placement = model.with_suffix(".places"), Placement(64, 64, ((64, 0),))
    placesfile.write(placement, path, told)
    assert placesfile.read(path) == placesfile.PlacesFile(placement, told)


def test_few_weights_and_those_in_several_files_stay(model: Path) -> None:
    made = onnx.load(model, load_external_data=False)
    assert kept_of(made, model.parent) is None
    made.graph.initializer[0].external_data[0].value = "other"
    assert weights_of(made, model.parent, KEPT) is None
