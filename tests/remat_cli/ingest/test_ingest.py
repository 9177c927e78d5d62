"""Whole models through ingest: real ones, large ones, and each thing a model can contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.ingest import graph_of, ingest
from remat_cli.model.problem_of import problem_of
from remat_cli.onnx_graph.dims import refuse_unused
from solvers.faults import faults
from solvers.schedule import baseline
from tests.remat_cli.ingest.models import model, node, save, value
from tests.remat_cli.kinds import model as kind_model
from tests.remat_cli.strict_session import feeds, session

HERE = Path("m.onnx")
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
COUNTS = {
    "ort_gpt2_eager": (177, 69),
    "ort_light_resnet50": (548, 176),
    "ort_mlp": (44, 10),
    "torch_cnn": (126, 49),
    "torch_gpt2_eager": (366, 109),
    "torch_mlp": (64, 22),
    "torch_unet_convt": (451, 171),
}


def test_a_shape_summed_up_from_nothing_is_known() -> None:
    """An empty tensor has known content, so what is reckoned from it alone is constant."""
    first, shape = constant_of([0]), constant_of([3, 2])
    nodes = [
        helper.make_node("Slice", ["x", "first", "first"], ["none"]),
        helper.make_node("Cast", ["none"], ["whole"], to=TensorProto.INT64),
        helper.make_node("ReduceSum", ["whole"], ["zero"], keepdims=0),
        helper.make_node("Add", ["shape", "zero"], ["sizes"]),
        helper.make_node("Reshape", ["x", "sizes"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(first, "first"), numpy_helper.from_array(shape, "shape")]
    graph = helper.make_graph(nodes, "g", [x], [y], stored)
    assert graph_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), HERE).values["y"].shape == (
        3,
        2,
    )


def constant_of(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("name, counts", COUNTS.items())
def test_real_training_graphs(name: str, counts: tuple[int, int], data: Path) -> None:
    graph = ingest(data / f"{name}.onnx")
    assert (len(graph.ops), sum(not op.backward for op in graph.ops)) == counts
    assert len({op.name for op in graph.ops}) == len(graph.ops)
    problem = problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem
    assert not list(faults(problem))
    assert baseline(problem)[1].peak > problem.resident


@pytest.mark.parametrize("name", ["inception_v1", "resnet50", "shufflenet", "squeezenet"])
def test_all_sizes_of_forward_models_agree_with_whole_graph_inference(name: str) -> None:
    made = onnx.version_converter.convert_version(onnx.load(LIGHT / f"light_{name}.onnx"), 17)
    del made.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)
    expected = {
        found.name: tuple(dim.dim_value for dim in found.type.tensor_type.shape.dim)
        for found in inferred.graph.value_info
    }
    values = graph_of(made, HERE).values
    assert len(expected) > 60
    assert {name: values[name].shape for name in expected} == expected


def ran(graph_model: onnx.ModelProto, values: Any) -> None:
    """What a run gives has the sizes that were found."""
    outputs = [entry.name for entry in graph_model.graph.output]
    for name, array in zip(outputs, session(graph_model).run(None, feeds(graph_model)), strict=True):
        assert (values[name].shape, values[name].bytes) == (array.shape, array.nbytes)


def test_shapes_computed_inside_the_graph() -> None:
    """Shape, Gather, Concat and arithmetic up to Reshape, Expand, ConstantOfShape, Range, Tile and Slice."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Slice", ["s", "one", "three"], ["rest"]),
        node("ReduceProd", ["rest"], ["flat"], keepdims=1),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "flat"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["a"]),
        node("ConstantOfShape", ["target"], ["b"]),
        node("Mul", ["n", "two"], ["n2"]),
        node("Cast", ["n2"], ["n2i"], to=TensorProto.INT32),
        node("Range", ["start", "n2i", "delta"], ["c"]),
        node("Div", ["target", "two"], ["half"]),
        node("Tile", ["a", "half"], ["d"]),
        node("Shape", ["x"], ["tail"], start=1),
        node("Expand", ["w", "tail"], ["e"]),
        node("Size", ["x"], ["size"]),
        node("Sub", ["size", "n"], ["less"]),
        node("Unsqueeze", ["less", "axes"], ["less1"]),
        node("ConstantOfShape", ["less1"], ["f"]),
    ]
    weights = {
        **{"zero": np.array(0), "one": np.array([1]), "three": np.array([3]), "axes": np.array([0])},
        **{"two": np.array(2), "start": np.array(0, np.int32), "delta": np.array(1, np.int32)},
        "w": np.ones((1, 4), np.float32),
    }
    made = model(nodes, [value("x", 2, 3, 4)], ["a", "b", "c", "d", "e", "f"], weights)
    graph = graph_of(made, HERE)
    assert graph.values["f"].shape == (22,)
    ran(graph.model, graph.values)


def test_symbols_are_bound_everywhere(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("Shape", ["h"], ["s"]),
        node("ConstantOfShape", ["s"], ["z"]),
        node("Concat", ["h", "z"], ["y"], axis=0),
    ]
    made = model(nodes, [value("x", "batch", 3), value("w", 3, 5)], ["y"])
    made.graph.value_info.extend([value("h", "batch", 5), value("z", "anything", 5)])
    path = save(made, tmp_path)
    graph = ingest(path, {"batch": 7})
    assert graph.values["y"].shape == (14, 5)
    assert graph.dims == {"batch": 7}
    assert ingest(path, {"x:0": 2}).values["y"].shape == (4, 5)
    recorded = {
        entry.name: [d.dim_value for d in entry.type.tensor_type.shape.dim] for entry in graph.model.graph.value_info
    }
    assert recorded == {"h": [7, 5], "s": [2], "z": [7, 5]}
    ran(graph.model, graph.values)


def test_a_size_that_depends_on_data_can_be_stated() -> None:
    nodes = [node("NonZero", ["x"], ["where"]), node("Cast", ["where"], ["y"], to=TensorProto.FLOAT)]
    assert graph_of(model(nodes, [value("x", 3)], ["y"]), HERE, dims={"where:1": 2}).values["y"].bytes == 8


def test_loops_and_branches_are_one_op_each(tmp_path: Path) -> None:
    then = helper.make_graph([node("Relu", ["a"], ["r"])], "then", [], [value("r", 4, 8)])
    other = helper.make_graph([node("Mul", ["a", "w"], ["q"])], "else", [], [value("q", 4, 8)])
    body = helper.make_graph(
        [node("Add", ["state", "row"], ["next"]), node("Mul", ["next", "w8"], ["out"])],
        "body",
        [value("state", 8), value("row", 8)],
        [value("next", 8), value("out", 8)],
    )
    nodes = [
        node("Exp", ["x"], ["a"]),
        node("If", ["choice"], ["b"], then_branch=then, else_branch=other),
        node("Scan", ["first", "b"], ["last", "rows"], body=body, num_scan_inputs=1),
    ]
    weights = {"w": np.ones((4, 8), np.float32), "w8": np.ones(8, np.float32)}
    inputs = [value("x", 4, 8), value("choice", dtype=TensorProto.BOOL), value("first", 8)]
    graph = graph_of(model(nodes, inputs, ["last", "rows"], weights), HERE)
    _, branch, scan = graph.ops
    assert branch.captures == ("a", "w")
    assert branch.reads == ("choice", "a", "w")
    assert scan.captures == ("w8",)
    assert graph.values["rows"].shape == (4, 8)
    ran(graph.model, graph.values)


def test_constants_are_weights() -> None:
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.ones((2, 3), np.float32))),
        node("Constant", [], ["axes"], value_ints=[0]),
        node("Add", ["a", "c"], ["b"]),
        node("Unsqueeze", ["b", "axes"], ["y"]),
    ]
    graph = graph_of(model(nodes, [value("x", 2, 3)], ["y"]), HERE)
    assert graph.weights == ("c", "axes")
    assert [op.op_type for op in graph.ops] == ["Relu", "Add", "Unsqueeze"]
    assert [entry.op_type for entry in graph.model.graph.node][:2] == ["Constant", "Constant"]
    assert graph.resident == 24 + 24 + 8
    ran(graph.model, graph.values)


def test_names_are_made_unique_and_order_is_kept() -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="same"),
        node("Exp", ["a"], ["b"]),
        node("Neg", ["b"], ["c"], name="same"),
        node("Neg", ["c"], ["y"], name="Exp_1"),
    ]
    made = model(nodes, [value("x", 2)], ["y"])
    names = [op.name for op in graph_of(made, HERE).ops]
    assert names == ["same", "Exp_1_1", "same_1", "Exp_1"]
    assert [op.op_type for op in graph_of(made, HERE).ops] == ["Relu", "Exp", "Neg", "Neg"]


def test_nodes_out_of_order_are_sorted_and_shapes_come_early() -> None:
    nodes = [
        node("Exp", ["b"], ["y"], name="last"),
        node("Relu", ["x"], ["a"], name="first"),
        node("Neg", ["a"], ["b"], name="second"),
        node("Shape", ["a"], ["s"], name="shape"),
    ]
    graph = graph_of(model(nodes, [value("x", 2)], ["y", "s"]), HERE)
    assert [op.name for op in graph.ops] == ["first", "shape", "second", "last"]
    onnx.checker.check_model(graph.model)


def test_optional_operands_and_results_that_are_left_out() -> None:
    nodes = [
        node("Clip", ["x", "", "top"], ["a"]),
        node("LayerNormalization", ["a", "scale"], ["y", "", "spread"]),
    ]
    graph = graph_of(model(nodes, [value("x", 2, 4), value("top"), value("scale", 4)], ["y"]), HERE)
    assert graph.ops[0].reads == ("x", "top")
    assert graph.ops[1].writes == ("y", "spread")
    assert graph.values["spread"].shape == (2, 1)


def test_an_op_of_onnx_s_own_is_not_taken_for_a_contrib_op_of_that_name() -> None:
    heads = [value(name, 2, 3, 5, 4) for name in "qkv"]
    made = model([node("Attention", ["q", "k", "v"], ["y"])], heads, ["y"], opset=23)
    assert graph_of(made, HERE).values["y"].shape == (2, 3, 5, 4)


SIZES = {
    TensorProto.FLOAT16: 14,
    TensorProto.BFLOAT16: 14,
    TensorProto.DOUBLE: 56,
    TensorProto.BOOL: 7,
    TensorProto.INT4: 4,
    TensorProto.FLOAT8E4M3FN: 7,
    TensorProto.COMPLEX64: 56,
}


@pytest.mark.parametrize("dtype, size", SIZES.items())
def test_sizes_of_types(dtype: int, size: int) -> None:
    made = model([node("Identity", ["x"], ["y"])], [value("x", 7, dtype=dtype)], ["y"], opset=21)
    assert graph_of(made, HERE).values["y"].bytes == size


def test_weights_of_more_than_2_gb_are_never_read(tmp_path: Path) -> None:
    """The file is sparse: it takes no space, and reading it would take memory that is not there."""
    size = 3 * 2**30
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(size)
    made = model([node("Gather", ["table", "ids"], ["y"])], [value("ids", 5, dtype=TensorProto.INT64)], ["y"])
    table = made.graph.initializer.add(name="table", data_type=TensorProto.FLOAT, dims=[size // 4096, 1024])
    table.data_location = TensorProto.EXTERNAL
    for key, content in (("location", "weights.bin"), ("offset", "0"), ("length", str(size))):
        table.external_data.add(key=key, value=content)
    graph = ingest(save(made, tmp_path))
    assert graph.resident == size + 40
    assert graph.values["y"].shape == (5, 1024)
    assert graph.model.graph.initializer[0].external_data[0].value == "weights.bin"


def test_small_external_constants_are_followed(tmp_path: Path) -> None:
    made = model([node("Reshape", ["x", "target"], ["y"])], [value("x", 2, 6)], ["y"], {"target": np.array([3, -1])})
    path = tmp_path / "m.onnx"
    (tmp_path / "d").mkdir()
    onnx.save_model(made, path, save_as_external_data=True, location="d/w.bin", size_threshold=0)
    assert ingest(path).values["y"].shape == (3, 4)


@pytest.mark.slow
def test_a_large_chain_takes_no_time_to_speak_of() -> None:
    """Ten thousand ops, deep enough to break anything recursive."""
    nodes = [node("Relu" if k % 2 else "Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(10_000)]
    nodes.append(node("ReduceSum", ["v10000"], ["loss"], keepdims=0))
    nodes.append(node("Mul", ["loss", "v77"], ["grad"]))
    graph = graph_of(model(nodes, [value("v0", 2, 3)], ["loss", "grad"]), HERE)
    assert [op.backward for op in graph.ops[-3:]] == [False, False, True]
    assert not list(faults(problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem))


def test_the_loss_is_told_from_other_scalars() -> None:
    nodes = [
        node("ReduceMax", ["x"], ["other"], keepdims=0),
        node("ReduceMean", ["x"], ["my_loss"], keepdims=0),
        node("Mul", ["my_loss", "x"], ["grad"]),
    ]
    graph = graph_of(model(nodes, [value("x", 4)], ["other", "my_loss", "grad"]), HERE)
    assert [op.backward for op in graph.ops] == [True, False, True]
    nothing = graph_of(model([node("Exp", ["x"], ["y"])], [value("x", 4)], ["y"]), HERE)
    assert not any(op.backward for op in nothing.ops)


def test_refusing_says_what_could_have_been_bound() -> None:
    made = model([node("Exp", ["x"], ["y"])], [value("x", "batch", "time")], ["y"])
    with pytest.raises(Exception, match="batch, time"):
        refuse_unused(made, {"bath": 3}, set(), HERE)


def test_a_function_of_a_weight_is_written_out() -> None:
    nodes = [node("CastLike", ["w", "x"], ["c"]), node("Constant", [], ["two"], value_floats=[2.0])]
    nodes += [node("CastLike", ["two", "x"], ["t"]), node("Mul", ["c", "t"], ["y"])]
    found = graph_of(model(nodes, [value("x", 3)], ["y"], {"w": np.ones(3, np.float64)}), Path("m.onnx"))
    assert [op.op_type for op in found.ops] == ["Cast", "Cast", "Mul"]
    assert found.values["y"].bytes == 12


def leaky(name: str, kind: str, of: str, attribute: str, default: float | None) -> onnx.FunctionProto:
    """A function of one op, whose slope is an attribute of its own."""
    inner = node(kind, ["a"], ["b"], domain="" if kind == "LeakyRelu" else "f")
    inner.attribute.add(name=of, ref_attr_name=attribute, type=onnx.AttributeProto.FLOAT)
    given, own = ([], [helper.make_attribute(attribute, default)]) if default else ([attribute], [])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, ["a"], ["b"], [inner], opsets, given, own)


def test_defaults_of_functions_are_written_out() -> None:
    """onnx's inliner knows nothing of them: a LeakyRelu got the slope that the op itself has."""
    functions = [leaky("Leak", "LeakyRelu", "alpha", "slope", 0.3), leaky("More", "Leak", "slope", "steep", 0.5)]
    calls = [
        node("Leak", ["x"], ["p"], domain="f"),
        node("Leak", ["p"], ["q"], domain="f", slope=0.25),
        node("More", ["q"], ["y"], domain="f"),
    ]
    found = graph_of(model(calls, [value("x", 3)], ["y"], functions=functions), HERE)
    assert [round(op.node.attribute[0].f, 6) for op in found.ops] == [0.3, 0.25, 0.5]


def test_what_a_function_hands_on_and_nobody_gives_is_refused() -> None:
    functions = [leaky("Leak", "LeakyRelu", "alpha", "slope", 0.3), leaky("More", "Leak", "slope", "steep", None)]
    made = model([node("More", ["x"], ["y"], domain="f")], [value("x", 3)], ["y"], functions=functions)
    with pytest.raises(BadInput, match="hands on its attribute 'steep'"):
        graph_of(made, HERE)


def repeated(count: int | str, still: onnx.NodeProto, condition: str = "") -> onnx.ModelProto:
    """A Loop that stacks up what its body makes, a row for each time that it runs."""
    body = helper.make_graph(
        [still, node("Neg", ["h"], ["made"]), node("Identity", ["made"], ["row"])],
        "body",
        [value("i", dtype=TensorProto.INT64), value("go", dtype=TensorProto.BOOL), value("h", 5)],
        [value("still", dtype=TensorProto.BOOL), value("made", 5), onnx.ValueInfoProto(name="row")],
    )
    trips, inputs = ("trips", [value("x", 5)]) if isinstance(count, int) else (count, [value("x", 5), value(count)])
    inputs[1:] = [value(entry.name, dtype=TensorProto.INT64) for entry in inputs[1:]]
    weights = {"trips": np.array(count, np.int64)} if isinstance(count, int) else {}
    weights |= {"yes": np.array(True), "no": np.array(False)}
    return model([node("Loop", [trips, condition, "x"], ["last", "y"], body=body)], inputs, ["last", "y"], weights)


ON, YES = node("Identity", ["go"], ["still"]), node("Identity", ["yes"], ["still"])
SOON = node("Less", ["i", "trips"], ["still"])


@pytest.mark.parametrize(
    "count, still, condition, rows", [(4, ON, "", 4), (4, ON, "yes", 4), (3, YES, "yes", 3), (4, ON, "no", 0)]
)
def test_a_loop_of_so_many_rounds_stacks_up_as_many_rows(
    count: int, still: onnx.NodeProto, condition: str, rows: int
) -> None:
    assert graph_of(repeated(count, still, condition), HERE).values["y"].shape == (rows, 5)


@pytest.mark.parametrize("count, still", [("n", ON), (4, SOON)])
def test_a_loop_that_data_ends_is_not_known(count: int | str, still: onnx.NodeProto) -> None:
    with pytest.raises(BadInput, match="pass --dim y:0=N"):
        graph_of(repeated(count, still), HERE)


def test_of_a_known_condition_the_branch_that_is_taken_counts() -> None:
    then = helper.make_graph([node("Concat", ["x", "x"], ["t"], axis=0)], "then", [], [onnx.ValueInfoProto(name="t")])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "other", [], [onnx.ValueInfoProto(name="e")])
    chosen = node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    made = model([chosen], [value("x", 5)], ["y"], {"yes": np.array(True)})
    assert graph_of(made, HERE).values["y"].shape == (10,)


def test_within_the_branch_that_is_taken_conditions_are_known_too() -> None:
    """A squeeze where the first axis is 1, as exporters write it, is of two ranks to whoever does not look."""
    made = helper.make_graph
    flat = made([node("Squeeze", ["u", "first"], ["f"])], "flat", [], [onnx.ValueInfoProto(name="f")])
    same = made([node("Identity", ["u"], ["g"])], "same", [], [onnx.ValueInfoProto(name="g")])
    nodes = [
        node("Neg", ["x"], ["u"]),
        node("Shape", ["u"], ["sizes"], start=0, end=1),
        node("Equal", ["sizes", "one"], ["alone"]),
        node("If", ["alone"], ["t"], then_branch=flat, else_branch=same),
    ]
    then = made(nodes, "then", [], [onnx.ValueInfoProto(name="t")])
    other = made([node("Neg", ["x"], ["e"])], "other", [], [onnx.ValueInfoProto(name="e")])
    chosen = node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    fixed = {"yes": np.array(True), "one": np.array([1]), "first": np.array([0])}
    for batch, shape in ((1, (5,)), (2, (2, 5))):
        assert graph_of(model([chosen], [value("x", batch, 5)], ["y"], fixed), HERE).values["y"].shape == shape


def test_what_onnxruntime_knows_of_its_own_ops_is_asked() -> None:
    """Four-bit weights, for which there is no rule here."""
    weights = {"w": np.zeros((6, 2, 8), np.uint8), "s": np.ones(12, np.float32)}
    own = node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=32, N=6, bits=4, block_size=16)
    found = graph_of(model([own], [value("x", 3, 32)], ["y"], weights), HERE)
    assert (found.values["y"].dtype, found.values["y"].shape) == (TensorProto.FLOAT, (3, 6))


def test_defaults_of_onnxs_own_functions_are_written_out() -> None:
    made = model([node("Swish", ["x"], ["y"])], [value("x", 3)], ["y"], opset=24)
    made.ir_version = 11
    (result,) = session(graph_of(made, HERE).model).run(None, {"x": np.ones(3, np.float32)})
    assert np.allclose(result, 1 / (1 + np.exp(-1)))


SEQUENCES = ["sequence", "optional", "optional_none", "sequence_split", "sequence_pieces", "sequence_edited"]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_are_written_out(kind: str, tmp_path: Path) -> None:
    path = save(kind_model(kind), tmp_path)
    graph = ingest(path)
    assert graph.expanded
    assert not any("Sequence" in op.op_type or "Optional" in op.op_type for op in graph.ops)
    fed = feeds(graph.model)
    results = zip(session(onnx.load(path)).run(None, fed), session(graph.model).run(None, fed), strict=True)
    assert all(np.array_equal(was, now) for was, now in results)


def test_a_sequence_that_a_loop_grows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is a sequence or optional, and remat schedules tensors only: export with"):
        ingest(save(kind_model("loop_of_sequence"), tmp_path))


def test_a_loop_may_hand_on_a_value_unchanged() -> None:
    """As exporters of TensorFlow write weights that every round reads."""
    body = helper.make_graph(
        [node("Add", ["a", "b"], ["c"]), node("Identity", ["go"], ["on"])],
        "body",
        [value("n", dtype=TensorProto.INT64), value("go", dtype=TensorProto.BOOL), value("a", 2, 3), value("b", 3)],
        [value("on", dtype=TensorProto.BOOL), value("c", 2, 3), value("b", 3)],
    )
    nodes = [node("Loop", ["count", "", "x", "w"], ["y", "v"], body=body)]
    weights = {"count": np.array(4), "w": np.ones(3, np.float32)}
    found = graph_of(model(nodes, [value("x", 2, 3)], ["y", "v"], weights), HERE)
    assert (found.values["y"].shape, found.values["v"].shape) == ((2, 3), (3,))


def test_a_short_fourier_transform_has_half_of_its_bins_by_default() -> None:
    """As onnxruntime computes it; onnx infers all of them."""
    weights = {"step": np.array(160), "window": np.ones(400, np.float32), "w": np.ones((2, 3), np.float32)}
    nodes = [node("STFT", ["x", "step", "window"], ["y"]), node("MatMul", ["y", "w"], ["z"])]
    found = graph_of(model(nodes, [value("x", 2, 1600)], ["y", "z"], weights), HERE)
    made, after = session(found.model).run(None, {"x": np.ones((2, 1600), np.float32)})
    assert (found.values["y"].shape, found.values["z"].shape) == (made.shape, after.shape)


def of_two_ranks() -> onnx.ModelProto:
    then = helper.make_graph([node("Neg", ["x"], ["t"])], "then", [], [onnx.ValueInfoProto(name="t")])
    total = helper.make_graph([node("ReduceSum", ["x"], ["e"], keepdims=0)], "e", [], [onnx.ValueInfoProto(name="e")])
    chosen = node("If", ["go"], ["y"], then_branch=then, else_branch=total)
    nodes = [chosen, node("Shape", ["y"], ["s"]), node("Relu", ["y"], ["z"])]
    return model(nodes, [value("x", 5), value("go", dtype=TensorProto.BOOL)], ["s", "z"])


def test_branches_of_other_ranks_are_as_stated() -> None:
    with pytest.raises(BadInput, match="what its subgraphs make is not of one rank; pass --dim y:0=N"):
        graph_of(of_two_ranks(), HERE)
    found = graph_of(of_two_ranks(), HERE, dims={"y:0": 5})
    assert found.values["z"].shape == (5,)
    assert not found.model.graph.value_info
    for go in (True, False):  # what is written claims nothing of the rank
        fed = {"x": np.ones(5, np.float32), "go": np.array(go)}
        sizes, made = session(found.model).run(None, fed)
        assert tuple(sizes) == made.shape == ((5,) if go else ())


def test_what_onnxruntime_does_not_know_either_is_refused() -> None:
    """Its API tells an unknown shape as it tells a scalar's."""
    weights = {"w": np.zeros((2, 3), np.float32)}
    unknown = node("MurmurHash3", ["x"], ["y"], domain="com.microsoft")
    found = graph_of(model([unknown], [value("x", 7, dtype=TensorProto.INT32)], ["y"], weights), HERE)
    assert found.values["y"].shape == (7,)
    with pytest.raises(BadInput, match="neither onnx, onnxruntime nor remat has a shape rule"):
        graph_of(model([node("CDist", ["x", "x"], ["y"], domain="com.microsoft")], [value("x", 5, 4)], ["y"]), HERE)
