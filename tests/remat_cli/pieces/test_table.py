"""Every row of the table of what can be cut, against onnxruntime: the op whole, and in pieces of unequal sizes.

Pieces that are joined give the same bits here, unless the row says that they need not; sums are no further from float64
than a few roundings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from profiles.strict import strict_options
from remat_cli.ingest import graph_of
from remat_cli.model.graph import Graph
from remat_cli.pieces.graph_in_pieces import InPieces, cut
from remat_cli.pieces.regions import Links, Region, grown
from remat_cli.pieces.rows.pointwise import FUSED, POINTWISE
from remat_cli.pieces.table import TABLE, Allowed, Table
from remat_cli.pieces.trying import BitTrials
from remat_cli.pieces.ways import Way

Case = tuple[str, str, Mapping[str, Any], Sequence[Any], int]  # op, domain, attributes, inputs, outputs
PIECES = 3
BINARY = ("Add", "Div", "Max", "Mean", "Min", "Mod", "Mul", "PRelu", "Pow", "Sub", "Sum")
COMPARE = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
LOGIC = ("And", "Or", "Xor")


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 1.0, shape).astype(np.float32)


def bools(*shape: int) -> np.ndarray:
    return floats(*shape) > 0.5


def ints(most: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, most, shape)


def fixed(*numbers: int) -> onnx.TensorProto:
    """A constant input."""
    return numpy_helper.from_array(np.array(numbers, np.int64))


def pointwise() -> list[Case]:
    cases: list[Case] = []
    for name in POINTWISE:
        one, other = floats(11, 13, 61), floats(13, 1, seed=1)
        if name in BINARY:
            cases.append((name, "", {"fmod": 1} if name == "Mod" else {}, [one, other], 1))
        elif name in COMPARE:
            cases.append((name, "", {}, [one, one.copy()], 1))
        elif name in LOGIC:
            cases.append((name, "", {}, [bools(11, 13), bools(13)], 1))
        elif name == "Where":
            cases.append((name, "", {}, [bools(13, 61), one, other], 1))
        elif name == "Not":
            cases.append((name, "", {}, [bools(5, 7)], 1))
        elif name == "Clip":
            cases.append((name, "", {}, [one, np.array(0.3, np.float32), np.array(0.6, np.float32)], 1))
        else:
            cases.append((name, "", {}, [one + (1 if name == "Acosh" else 0) - (0.05 if name == "Atanh" else 0)], 1))
    cases += [
        (name, "com.microsoft", {}, [floats(5, 7, 8), floats(8)][: 1 + (name == "BiasGelu")], 1) for name in FUSED
    ]
    cases += [
        ("Cast", "", {"to": onnx.TensorProto.DOUBLE}, [floats(5, 7)], 1),
        ("Identity", "", {}, [floats(5, 7)], 1),
        ("Dropout", "", {}, [floats(5, 7)], 1),
    ]
    return cases


def products() -> list[Case]:
    return [
        ("MatMul", "", {}, [floats(7, 9, 16), floats(16, 12)], 1),
        ("MatMul", "", {}, [floats(2, 5, 9, 16), floats(5, 16, 8)], 1),
        ("Gemm", "", {"transA": 1}, [floats(16, 9), floats(16, 12)], 1),
        ("Gemm", "", {"transB": 1, "beta": 0.5}, [floats(9, 16), floats(12, 16), floats(12)], 1),
        ("Gemm", "", {}, [floats(9, 16), floats(16, 12), floats(9, 1)], 1),
        ("Einsum", "", {"equation": "nkp,ncp->kc"}, [floats(5, 6, 9), floats(5, 7, 9)], 1),
        ("Einsum", "", {"equation": "bij,bjk->bik"}, [floats(5, 6, 9), floats(5, 9, 7)], 1),
        ("FusedMatMul", "com.microsoft", {"transA": 1, "alpha": 0.5}, [floats(5, 16, 9), floats(5, 16, 12)], 1),
        ("FusedMatMul", "com.microsoft", {"transB": 1}, [floats(5, 9, 16), floats(5, 12, 16)], 1),
    ]


def windows() -> list[Case]:
    image, three = floats(5, 6, 13, 11), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    weight = floats(8, 6, 3, 3, seed=2) - 0.5
    return [
        ("Conv", "", three, [image, weight, floats(8)], 1),
        ("Conv", "", {"strides": [2, 3], "dilations": [2, 1], "pads": [0, 2, 1, 0]}, [image, weight], 1),
        ("Conv", "", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [image, weight], 1),
        ("Conv", "", {"auto_pad": "VALID"}, [image, weight], 1),
        ("Conv", "", {"group": 6, **three}, [image, floats(12, 1, 3, 3)], 1),
        ("Conv", "", {"pads": [2, 1]}, [floats(5, 6, 17), floats(4, 6, 3)], 1),
        (
            "FusedConv",
            "com.microsoft",
            {"activation": "Relu", **three},
            [image, weight, floats(8), floats(5, 8, 13, 11)],
            1,
        ),
        ("ConvTranspose", "", {"strides": [2, 2]}, [image, floats(6, 4, 2, 2), floats(4)], 1),
        (
            "ConvTranspose",
            "",
            {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
            [image, floats(6, 4, 3, 3)],
            1,
        ),
        (
            "ConvTranspose",
            "",
            {"strides": [3, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1]},
            [image, floats(6, 4, 2, 3)],
            1,
        ),
        ("MaxPool", "", {"strides": [2, 2], **three}, [image], 1),
        ("MaxPool", "", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, [image], 1),
        ("AveragePool", "", {"strides": [2, 1], **three}, [image], 1),
        ("AveragePool", "", {"count_include_pad": 1, **three}, [image], 1),
        ("LpPool", "", {"kernel_shape": [2, 2], "strides": [2, 2]}, [image], 1),
        ("GlobalAveragePool", "", {}, [image], 1),
        ("GlobalMaxPool", "", {}, [image], 1),
    ]


def along_axes() -> list[Case]:
    x, image = floats(5, 7, 6, 4), floats(5, 6, 9, 7)
    channels = [floats(6, seed=seed) for seed in range(4)]
    reduces = [name for kind, name in TABLE if name.startswith("Reduce") and not kind]
    summed = ("ReduceL1", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare")
    sequences = [floats(4, 6, 3), floats(1, 20, 3), floats(1, 20, 5)]
    return [
        *((name, "", {"axis": 2}, [x], 1) for name in ("Hardmax", "LogSoftmax", "LpNormalization", "Softmax")),
        ("Softmax", "", {}, [floats(9, 33)], 1),
        *((name, "", {"keepdims": 0}, [x, fixed(1, -1)], 1) for name in reduces),
        *((name, "", {}, [x], 1) for name in summed),
        *((name, "", {"axis": 1, "keepdims": 0}, [x], 1) for name in ("ArgMax", "ArgMin")),
        ("BatchNormalization", "", {}, [image, *channels], 1),
        ("InstanceNormalization", "", {}, [image, *channels[:2]], 1),
        ("LayerNormalization", "", {}, [x, floats(4), floats(4)], 1),
        ("LayerNormalization", "", {"axis": 2}, [x, floats(6, 4), floats(6, 4)], 3),
        ("RMSNormalization", "", {"axis": 2}, [x, floats(6, 4)], 1),
        ("SkipLayerNormalization", "com.microsoft", {}, [floats(5, 7, 8), floats(5, 7, 8), floats(8), floats(8)], 1),
        ("CumSum", "", {}, [x, numpy_helper.from_array(np.array(1))], 1),
        ("TopK", "", {"axis": 1}, [x, fixed(3)], 2),
        ("LSTM", "", {"hidden_size": 5}, sequences, 3),
        ("GRU", "", {"hidden_size": 5}, [sequences[0], floats(1, 15, 3), floats(1, 15, 5)], 2),
        ("RNN", "", {"hidden_size": 5}, [sequences[0], floats(1, 5, 3), floats(1, 5, 5)], 2),
    ]


def attention() -> list[Case]:
    """Heads apart, in one axis, fewer of keys than of queries, with masks of all ranks, a past, and scores."""
    apart, flat, none = floats(5, 4, 13, 8), floats(5, 13, 32), onnx.TensorProto()
    few, heads = floats(5, 2, 13, 8, seed=1), {"q_num_heads": 4, "kv_num_heads": 4}
    past = [floats(5, 4, 3, 8, seed=2), floats(5, 4, 3, 8, seed=3)]
    tables, picked = [floats(5, 13, 4), floats(5, 13, 4, seed=1)], [floats(20, 4), floats(20, 4, seed=1)]
    return [
        ("Attention", "", {}, [apart, apart + 1, apart - 1], 1),
        ("Attention", "", {"is_causal": 1}, [apart, few, few - 1], 1),
        ("Attention", "", heads, [flat, flat + 1, flat - 1, floats(13, 13)], 1),
        ("Attention", "", {}, [apart, apart, apart, bools(5, 1, 13, 13)], 1),
        ("Attention", "", {}, [apart, apart, apart, floats(4, 13, 13)], 1),
        ("Attention", "", {}, [apart, apart, apart, none, *past], 3),
        ("RotaryEmbedding", "", {}, [apart, *tables], 1),
        ("RotaryEmbedding", "", {"num_heads": 4}, [flat, *tables], 1),
        ("RotaryEmbedding", "", {}, [apart, *picked, ints(20, 5, 13)], 1),
    ]


def places() -> list[Case]:
    x, image = floats(6, 8, 9), floats(5, 8, 6, 4)
    scales = numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32))
    none = onnx.TensorProto()
    return [
        ("Transpose", "", {"perm": [1, 2, 0]}, [x], 1),
        ("Reshape", "", {}, [x, fixed(48, 9)], 1),
        ("Reshape", "", {}, [floats(48, 9), fixed(6, 8, 3, -1)], 1),
        ("Reshape", "", {}, [x, fixed(0, 0, 3, 3)], 1),
        ("Expand", "", {}, [floats(8, 1), fixed(6, 8, 9)], 1),
        ("ConstantOfShape", "", {}, [fixed(7, 5)], 1),
        ("Concat", "", {"axis": 1}, [x, floats(6, 3, 9)], 1),
        ("Split", "", {"axis": 1}, [x, fixed(3, 5)], 2),
        ("Slice", "", {}, [x, fixed(1, 8), fixed(7, -10), fixed(1, 2), fixed(1, -1)], 1),
        ("Pad", "", {}, [x, fixed(0, 1, 0, 0, 2, 0)], 1),
        ("Tile", "", {}, [x, fixed(1, 2, 1)], 1),
        ("Gather", "", {"axis": 1}, [x, ints(8, 4, 5)], 1),
        ("GatherElements", "", {"axis": 1}, [x, ints(8, 6, 3, 9)], 1),
        ("ScatterElements", "", {"axis": 1, "reduction": "add"}, [x, ints(8, 6, 3, 9), floats(6, 3, 9)], 1),
        ("Flatten", "", {}, [x], 1),
        ("Squeeze", "", {}, [floats(6, 1, 9), fixed(1)], 1),
        ("Squeeze", "", {}, [floats(6, 1, 4)], 1),
        ("Unsqueeze", "", {}, [x, fixed(0, 2)], 1),
        ("DepthToSpace", "", {"blocksize": 2}, [image], 1),
        ("SpaceToDepth", "", {"blocksize": 2}, [image], 1),
        (
            "Resize",
            "",
            {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"},
            [image, none, scales],
            1,
        ),
        ("Resize", "", {}, [image, none, none, fixed(5, 8, 12, 12)], 1),
        ("Resize", "", {"mode": "linear"}, [image, none, scales], 1),
        ("Resize", "", {"nearest_mode": "ceil"}, [image, none, scales], 1),
    ]


CASES = [*pointwise(), *products(), *windows(), *along_axes(), *attention(), *places()]
PAIRED = {("", "MaxUnpool")}  # reads indices in pieces alone: `test_indices_of_pooling`


def graph_with(case: Case) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of the one op, and its inputs."""
    op, domain, attributes, inputs, outputs = case
    feeds = {f"x{place}": array for place, array in enumerate(inputs) if not isinstance(array, onnx.TensorProto)}
    stored = [tensor for tensor in inputs if isinstance(tensor, onnx.TensorProto)]
    names = []
    for place, given in enumerate(inputs):
        absent = isinstance(given, onnx.TensorProto) and not given.data_type
        if isinstance(given, onnx.TensorProto) and not absent:
            given.name = f"x{place}"
        names.append("" if absent else f"x{place}")
    node = helper.make_node(op, names, [f"y{n}" for n in range(outputs)], name="op", domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype), np.asarray(a).shape)
        for n, a in feeds.items()
    ]
    results = [onnx.ValueInfoProto(name=f"y{n}") for n in range(outputs)]
    proto = helper.make_graph([node], "one", infos, results, [tensor for tensor in stored if tensor.name])
    newer = 23 if op in ("Attention", "RMSNormalization", "RotaryEmbedding") else 21
    opsets = [helper.make_opsetid("", newer), helper.make_opsetid("com.microsoft", 1)]
    return graph_of(helper.make_model(proto, opset_imports=opsets, ir_version=10), Path("one.onnx")), feeds


def run(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = strict_options()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, dict(feeds))
    return found


def label(case: Case) -> str:
    return (
        f"{case[0]}-{'-'.join('x'.join(map(str, np.shape(a))) for a in case[3] if not isinstance(a, onnx.TensorProto))}"
    )


@pytest.mark.parametrize("case", CASES, ids=label)
def test_pieces_make_the_whole(case: Case) -> None:
    graph, feeds = graph_with(case)
    ways = Table(graph).ways(graph.ops[0])
    assert ways
    whole = run(graph.model, feeds)
    for way in ways:
        pieces = cut(InPieces(graph, {}), Region(PIECES, {"op": way})).graph
        if len(pieces.ops) == 1:
            continue  # too short for two pieces
        check(way, whole, run(pieces.model, feeds))


def check(way: Way, whole: Sequence[np.ndarray], pieces: Sequence[np.ndarray]) -> None:
    for one, other in zip(whole, pieces, strict=True):
        assert one.shape == other.shape, way.name
        assert one.dtype == other.dtype, way.name
        if way.exact:
            assert one.tobytes() == other.tobytes(), way.name
        else:
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6, err_msg=way.name)


def test_indices_of_pooling() -> None:
    """Each piece's indices count from its own beginning, and are read there alone."""
    image = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [5, 4, 8, 6])
    nodes = [
        helper.make_node("MaxPool", ["x"], ["pooled", "at"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Relu", ["pooled"], ["relu"], name="relu"),
        helper.make_node("MaxUnpool", ["relu", "at"], ["y"], name="unpool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    proto = helper.make_graph(nodes, "pooling", [image], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    graph = graph_of(model, Path("pooling.onnx"))
    region = grown(Table(graph, Allowed(exact=True)), Links(graph), {"pooled": 0}, 0, PIECES)
    assert set(region.ways) == {"pool", "relu", "unpool"}
    pieces = cut(InPieces(graph, {}), region).graph
    assert len(pieces.ops) > 3 * PIECES
    feeds = {"x": floats(5, 4, 8, 6)}
    assert run(graph.model, feeds)[0].tobytes() == run(pieces.model, feeds)[0].tobytes()


def test_every_row_has_a_case() -> None:
    assert {(case[1], case[0]) for case in CASES} | PAIRED == set(TABLE)


def test_a_mean_of_whole_numbers_or_halves_is_not_summed_up() -> None:
    """The sum of the pieces overflows where the mean does not."""
    for array in (ints(1 << 30, 9, 5).astype(np.int32), floats(9, 5).astype(np.float16)):
        graph, _ = graph_with(("ReduceMean", "", {}, [array, fixed(0)], 1))
        assert [way.name for way in Table(graph).ways(graph.ops[0])] == ["axis 1"]


def test_an_op_whose_result_no_piece_makes_is_not_cut() -> None:
    graph, _ = graph_with(("SkipLayerNormalization", "com.microsoft", {}, [*[floats(5, 7, 8)] * 2, floats(8)], 4))
    assert not Table(graph).ways(graph.ops[0])


def test_a_trial_says_what_a_run_does() -> None:
    """Sums begin where memory is aligned, which a piece in memory of its own may be where the whole is not there."""
    graph, feeds = graph_with(("ReduceSum", "", {}, [floats(11, 13, 501) ** 9, fixed(2)], 1))
    region = Region(PIECES, {"op": Table(graph).ways(graph.ops[0])[0]})
    whole, pieces = run(graph.model, feeds), run(cut(InPieces(graph, {}), region).graph.model, feeds)
    assert BitTrials(Allowed(exact=True)).same(graph, region) == (whole[0].tobytes() == pieces[0].tobytes())
    assert not Table(graph, Allowed(exact=True)).ways(graph.ops[0])


def test_an_op_without_a_row_is_not_cut() -> None:
    graph, _ = graph_with(("Det", "", {}, [floats(5, 4, 4)], 1))
    assert not Table(graph).ways(graph.ops[0])
