"""Every shape rule against a row written from the op's definition, and against what onnxruntime-training itself
recorded in the graphs it generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from remat_cli.ingest import ingest
from remat_cli.ingest.rules import ALIASES, RULES
from remat_cli.ingest.shapes import infer

F, H, L, B, U = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.INT64,
    onnx.TensorProto.BOOL,
    onnx.TensorProto.UINT32,
)
X = (2, 3, 8, 8)
Operand = tuple[int, ...] | list[int] | tuple[int, tuple[int, ...]]


def like_first(count: int = 2, *more: tuple[int, ...]) -> list[Any]:
    return [[(4, 6)] * count + list(more), [(F, (4, 6))]]


# op: [operands (a shape of floats, (type, shape), or the content of an int64 constant), results, attributes]
ROWS: dict[str, list[list[Any]]] = {
    "AdamOptimizer": [
        [[(1,), (L, (1,)), (9, 2), (9, 2), (9, 2), (9, 2)], [(L, (1,)), (F, (9, 2)), (F, (9, 2)), (F, (9, 2))]]
    ],
    "Attention": [
        [[(2, 5, 12), (12, 36), (36,)], [(F, (2, 5, 12))], {"num_heads": 3}],
        [[(2, 5, 12), (12, 36), (36,)], [(F, (2, 5, 12)), (F, (2, 2, 3, 5, 4))], {"num_heads": 3}],
        [[(2, 5, 12), (12, 32), (32,)], [(F, (2, 5, 16))], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 16]}],
    ],
    "BatchNormInternal": [
        [[X, (3,), (3,), (3,), (3,)], [(F, X), *[(F, (3,))] * 4]],
        [[(H, X), (H, (3,)), (H, (3,)), (F, (3,)), (F, (3,))], [(H, X), *[(F, (3,))] * 4]],
    ],
    "BatchNormalizationGrad": [[[X, X, (3,), (3,), (3,)], [(F, X), (F, (3,)), (F, (3,))]]],
    "BiasAdd": [like_first(1, (6,))],
    "BiasDropout": [[[(4, 6), (6,), (4, 6)], [(F, (4, 6)), (B, (4, 6))]]],
    "BiasFastGeluGrad_dX": [like_first(2, (6,))],
    "BiasGelu": [like_first(1, (6,))],
    "BiasGeluGrad_dX": [like_first(2, (6,))],
    "BiasSoftmax": [like_first()],
    "BitmaskBiasDropout": [[[(5, 7), (7,), (5, 7)], [(F, (5, 7)), (U, (2,))]]],
    "BitmaskDropout": [[[(8, 8)], [(F, (8, 8)), (U, (2,))]], [[(5, 7)], [(F, (5, 7)), (U, (2,))]]],
    "BitmaskDropoutGrad": [[[(8, 8), (U, (2,))], [(F, (8, 8))]]],
    "BroadcastGradientArgs": [
        [[[2, 16, 1, 1024], [1, 1024]], [(L, (0,)), (L, (2,))]],
        [[[4, 1, 5], [4, 3, 5]], [(L, (1,)), (L, (0,))]],
        [[[5], [4, 3, 5]], [(L, (2,)), (L, (0,))]],
    ],
    "ConcatTraining": [[[(2, 3), (2, 5)], [(F, (2, 8)), (L, (2,))], {"axis": -1}]],
    "ConvGrad": [[[(2, 16, 4, 4), X, (16, 3, 3, 3)], [(F, X), (F, (16, 3, 3, 3)), (F, (16,))]]],
    "ConvTransposeGrad": [
        [[(2, 8, 16, 16), (2, 6, 8, 8), (6, 4, 2, 2)], [(F, (2, 6, 8, 8)), (F, (6, 4, 2, 2)), (F, (8,))], {"group": 2}]
    ],
    "DivGrad": [[[(4, 6), (4, 6), (6,)], [(F, (4, 6)), (F, (6,))]]],
    "DropoutGrad": [[[(4, 6), (B, (4, 6))], [(F, (4, 6))]]],
    "EmbedLayerNormalization": [
        [
            [(L, (2, 5)), (L, (2, 5)), (90, 12), (64, 12), (2, 12), (12,), (12,)],
            [(F, (2, 5, 12)), (onnx.TensorProto.INT32, (2,)), (F, (2, 5, 12))],
        ]
    ],
    "FakeQuant": [[[(4, 6), (1,), (1,)], [(F, (4, 6)), (B, (4, 6))]]],
    "FakeQuantGrad": [like_first(1, (4, 6))],
    "FastGelu": [like_first(1, (6,))],
    "FastGeluGrad": [like_first()],
    "FusedMatMul": [
        [[(2, 3, 4, 5), (2, 3, 5, 7)], [(F, (2, 3, 4, 7))]],
        [[(3, 4, 5), (3, 7, 4)], [(F, (3, 5, 7))], {"transA": 1, "transB": 1}],
        [[(4, 2, 5), (2, 5, 7)], [(F, (2, 4, 7))], {"transBatchA": 1}],
        [[(4, 2, 5), (4, 7)], [(F, (2, 5, 7))], {"transA": 1, "transBatchA": 1}],
        [[(5,), (5, 7)], [(F, (7,))]],
    ],
    "GatherElementsGrad": [[[(2, 3), [4, 3], (L, (2, 3))], [(F, (4, 3))]]],
    "GatherGrad": [[[[50, 12], (L, (2, 5)), (2, 5, 12)], [(F, (50, 12))]]],
    "GatherNDGrad": [[[[50, 12], (L, (5, 1)), (5, 12)], [(F, (50, 12))]]],
    "Gelu": [like_first(1)],
    "MeanVarianceNormalization": [like_first(1)],  # of which onnx has a schema, and no rule
    "GeluGrad": [like_first()],
    "Group": [[[(4, 6), (2,)], [(B, ())]]],
    "InPlaceAccumulator": [like_first()],
    "InPlaceAccumulatorV2": [[[(4, 6), (4, 6), (B, (1,))], [(B, (1,)), (F, (4, 6))]]],
    "InvertibleLayerNormalizationGrad": [[[(4, 6), (4, 6), (6,), (6,), (4, 1)], [(F, (4, 6)), (F, (6,)), (F, (6,))]]],
    "IsAllFinite": [[[(4, 6), (2,)], [(B, ())]]],
    "IsFinite": [[[(4, 6)], [(B, (4, 6))]]],
    "LayerNormalizationGrad": [[[(4, 6), (4, 6), (6,), (4, 1), (4, 1)], [(F, (4, 6)), (F, (6,)), (F, (6,))]]],
    "LeakyReluGrad": [like_first()],
    "LogSoftmaxGrad": [like_first()],
    "LogSoftmaxGrad_13": [like_first()],
    "MixedPrecisionScale": [
        [[(1,), (4, 6), (3,)], [(H, (4, 6)), (H, (3,))], {"to": H}],
        [[(1,), (4, 6), (3,)], [(H, (27,))], {"to": H, "fuse_outputs": 1}],
    ],
    "MultiHeadAttention": [
        [[(2, 5, 12), (2, 7, 12), (2, 7, 18)], [(F, (2, 5, 18))], {"num_heads": 3}],
        [[(2, 5, 3, 3, 4)], [(F, (2, 5, 12))], {"num_heads": 3}],
    ],
    "QuickGelu": [like_first(1)],
    "QuickGeluGrad": [like_first()],
    "ReduceAllL2": [[[(4, 6), (2,)], [(F, ())]]],
    "ReluGrad": [like_first()],
    "ReorderInput": [
        [[(1, 24, 5, 5)], [(F, (1, 32, 5, 5))]],
        [[(1, 5, 5, 8)], [(F, (1, 16, 5, 5))], {"channels_last": 1}],
    ],
    "ReorderOutput": [
        [[(1, 32, 5, 5)], [(F, (1, 24, 5, 5))], {"channels": 24}],
        [[(1, 16, 5, 5)], [(F, (1, 5, 5, 9))], {"channels": 9, "channels_last": 1}],
    ],
    "ReshapeGrad": [[[(4, 6), (24,)], [(F, (4, 6))]]],
    "ResizeGrad": [[[(1, 1, 8, 8), (1, 1, 4, 4), (0,), (4,)], [(F, (1, 1, 4, 4))]]],
    "SGDOptimizer": [[[(1,), (4, 6), (4, 6)], [(F, (4, 6)), (F, (4, 6))]]],
    "Scale": [like_first(1, (1,))],
    "SigmoidGrad": [like_first()],
    "SimplifiedLayerNormalization": [
        [[(2, 4, 6), (6,)], [(F, (2, 4, 6)), (F, (2, 4, 1))]],
        [[(2, 4, 6), (4, 6)], [(F, (2, 4, 6)), (F, (2, 1, 1))], {"axis": 1}],
    ],
    "SimplifiedLayerNormalizationGrad": [[[(4, 6), (4, 6), (6,), (4, 1)], [(F, (4, 6)), (F, (6,))]]],
    "SinGrad": [like_first()],
    "SkipLayerNormalization": [
        [[(2, 4, 6), (2, 4, 6), (6,)], [(F, (2, 4, 6)), (F, (2, 4, 1)), (F, (2, 4, 1)), (F, (2, 4, 6))]]
    ],
    "SkipSimplifiedLayerNormalization": [[[(2, 4, 6), (2, 4, 6), (6,)], [(F, (2, 4, 6))]]],
    "SliceGrad": [[[(2, 3), [4, 3], [0], [2]], [(F, (4, 3))]]],
    "SoftmaxCrossEntropy": [[[(4, 6), (4, 6)], [(F, ()), (F, (4, 6))]]],
    "SoftmaxCrossEntropyGrad": [[[(), (4, 6), (4, 6)], [(F, (4, 6))]]],
    "SoftmaxCrossEntropyLossGrad": [[[(), (4, 6), (L, (4,))], [(F, (4, 6))]]],
    "SoftmaxCrossEntropyLossInternal": [
        [[(4, 6, 5), (L, (4, 5))], [(F, ()), (F, (4, 6, 5))]],
        [[(4, 6, 5), (L, (4, 5))], [(F, (4, 5)), (F, (4, 6, 5))], {"reduction": "none"}],
    ],
    "SoftmaxCrossEntropyLossInternalGrad": [[[(), (4, 6), (L, (4,))], [(F, (4, 6))]]],
    "SoftmaxGrad": [like_first()],
    "SoftmaxGrad_13": [like_first()],
    "SparseSoftmaxCrossEntropy": [[[(4, 6), (L, (4,))], [(F, ()), (F, (4, 6))]]],
    "SparseSoftmaxCrossEntropyGrad": [[[(), (4, 6), (L, (4,))], [(F, (4, 6))]]],
    "SplitTraining": [[[(2, 8), [3, 5]], [(F, (2, 3)), (F, (2, 5))], {"axis": -1}]],
    "TanhGrad": [like_first()],
    "TransposeMatMul": [[[(4, 5), (7, 5)], [(F, (4, 7))], {"transB": 1}]],
    "Upsample": [[[(1, 16, 5, 7)], [(F, (1, 16, 10, 21))], {"scales": [1, 1, 2, 3]}]],
    "YieldOp": [[[(4, 6), (2,), (3,)], [(F, (4, 6)), (F, (3,))], {"non_differentiable_outputs": [1]}]],
    "ZeroGradient": [like_first(1, (1,))],
    # aliases of standard ops
    "FusedConv": [[[X, (16, 3, 3, 3), (16,)], [(F, (2, 16, 3, 3))], {"strides": [2, 2], "activation": "Relu"}]],
    "FusedGemm": [[[(4, 6), (7, 6), (7,)], [(F, (4, 7))], {"transB": 1, "activation": "Relu"}]],
    "ReduceSumTraining": [[[(2, 3, 4), [0, 2]], [(F, (3,))], {"keepdims": 0}]],
}
ELSEWHERE = {"MaxPoolGrad", "AveragePoolGrad"}  # they look at the pool whose gradient they are


def one_op(op_type: str, operands: list[Operand], count: int, attributes: dict[str, Any]) -> onnx.ModelProto:
    inputs, weights, names = [], [], []
    for place, operand in enumerate(operands):
        names.append(f"a{place}")
        if isinstance(operand, list):
            weights.append(numpy_helper.from_array(np.array(operand, np.int64), names[-1]))
        else:
            dtype, shape = operand if len(operand) == 2 and isinstance(operand[1], tuple) else (F, operand)
            inputs.append(helper.make_tensor_value_info(names[-1], dtype, shape))
    results = [f"y{place}" for place in range(count)]
    node = helper.make_node(op_type, names, results, name="it", domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=name) for name in results], weights)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    )


@pytest.mark.parametrize("op_type, row", [(op, row) for op, rows in ROWS.items() for row in rows])
def test_shapes_follow_from_the_definition(op_type: str, row: list[Any]) -> None:
    operands, results, *attributes = row
    model = one_op(op_type, operands, len(results), attributes[0] if attributes else {})
    values = infer(model, Path("one.onnx"), {}).values
    assert [(values[f"y{k}"].dtype, values[f"y{k}"].shape) for k in range(len(results))] == results


def test_no_rule_lacks_a_row() -> None:
    assert set(RULES) | set(ALIASES) == set(ROWS) | ELSEWHERE


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_gradients_of_pools_are_as_large_as_the_pool_s_input(pool: str) -> None:
    window = {"kernel_shape": [3, 3], "strides": [2, 2]}
    made = ["p", "indices"] if pool == "MaxPool" else ["p"]
    nodes = [helper.make_node(pool, ["x"], made, **window), helper.make_node(f"{pool}Grad", made, ["y"], **window)]
    inputs = [helper.make_tensor_value_info("x", F, (1, 2, 9, 10))]
    model = helper.make_model(helper.make_graph(nodes, "pool", inputs, [onnx.ValueInfoProto(name="y")]))
    assert infer(model, Path("pool.onnx"), {}).values["y"].shape == (1, 2, 9, 10)


@pytest.mark.parametrize("name", ["ort_mlp", "ort_gpt2_eager", "ort_light_resnet50"])
def test_generated_graphs_agree_with_what_was_recorded_in_them(name: str, data: Path) -> None:
    """onnxruntime-training wrote its own inference into value_info."""
    recorded = {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in onnx.load(data / f"{name}.onnx").graph.value_info
        if all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)
        and value.type.tensor_type.HasField("shape")
    }
    graph = ingest(data / f"{name}.onnx")
    ours = {name: graph.values[name].shape for name in recorded if name in graph.values}
    assert len(ours) > 30
    assert ours == {name: recorded[name] for name in ours}
