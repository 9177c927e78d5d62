"""What is seldom seen in one graph: branches in branches, what a subgraph hands through, empty and sparse tensors,
optional values, strings, narrow numbers, and ops of newer opsets that onnxruntime writes out itself."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.remat_cli.kinds.chain import FLOAT, INT64, OPSET, Chain, Twist

BOOL, FLOAT16, INT8 = TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.INT8


def _info(name: str, kind: int = FLOAT, shape: tuple[int | str, ...] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _branch(nodes: list[onnx.NodeProto], made: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, made, [], [_info(made)])


def _positive(chain: Chain, value: str) -> str:
    total = chain.add("ReduceSum", [chain.add("Mul", [value, value])], keepdims=0)
    return chain.add("Greater", [total, chain.constant(0.0)])


def if_hands_through(chain: Chain, value: str) -> str:
    """Either branch returns what it captured, as it is."""
    then = _branch([helper.make_node("Identity", [value], ["t"])], "t")
    other = _branch([helper.make_node("Identity", [chain.saved[0]], ["e"])], "e")
    return chain.tell(chain.add("If", [_positive(chain, value)], then_branch=then, else_branch=other))


def if_known(chain: Chain, value: str) -> str:
    """Optimizers put the branch in the place of the If."""
    then = _branch([helper.make_node("Exp", [value], ["p"]), helper.make_node("Tanh", ["p"], ["t"])], "t")
    other = _branch([helper.make_node("Neg", [value], ["e"])], "e")
    known = chain.constant(True, np.bool_)
    return chain.tell(chain.add("If", [known], then_branch=then, else_branch=other))


def if_in_if(chain: Chain, value: str) -> str:
    wanted = _positive(chain, value)
    wide = [
        helper.make_node("Concat", [value] * 8, ["wide"], axis=0),
        helper.make_node("Split", ["wide"], ["t2", *(f"rest{k}" for k in range(7))], num_outputs=8, axis=0),
    ]
    inner = helper.make_node(
        "If",
        [wanted],
        ["t"],
        then_branch=_branch(wide, "t2"),
        else_branch=_branch([helper.make_node("Neg", [value], ["e2"])], "e2"),
    )
    other = _branch([helper.make_node("Neg", [value], ["e"])], "e")
    return chain.tell(chain.add("If", [wanted], then_branch=_branch([inner], "t"), else_branch=other))


def _body(nodes: list[onnx.NodeProto], carried: list[onnx.ValueInfoProto], made: list[str]) -> onnx.GraphProto:
    reads = [_info("i", INT64, ()), _info("go", BOOL, ()), *carried]
    return helper.make_graph(nodes, "body", reads, [_info("still", BOOL, ()), *(_info(name) for name in made)])


def loop_in_loop(chain: Chain, value: str) -> str:
    shape = (chain.rows, chain.width)
    step = [helper.make_node("Identity", ["go2"], ["still2"]), helper.make_node("Tanh", ["g"], ["made2"])]
    reads = [_info("i2", INT64, ()), _info("go2", BOOL, ()), _info("g", shape=shape)]
    inner = helper.make_graph(step, "inner", reads, [_info("still2", BOOL, ()), _info("made2", shape=shape)])
    twice, still = chain.constant(2, np.int64), helper.make_node("Identity", ["go"], ["still"])
    nodes = [still, helper.make_node("Loop", [twice, "", "h"], ["made"], body=inner)]
    body = _body(nodes, [_info("h", shape=shape)], ["made"])
    return chain.tell(chain.add("Loop", [chain.constant(3, np.int64), "", value], body=body))


def loop_while(chain: Chain, value: str) -> str:
    """It ends by what it computes."""
    nodes = [
        helper.make_node("Mul", ["h", "half"], ["made"]),
        helper.make_node("ReduceMax", ["made"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "small"], ["still"]),
    ]
    chain.constant(0.5, name="half"), chain.constant(0.05, name="small")
    body = _body(nodes, [_info("h", shape=(chain.rows, chain.width))], ["made"])
    return chain.tell(chain.add("Loop", ["", chain.constant(True, np.bool_), value], body=body))


def loop_of_sequence(chain: Chain, value: str) -> str:
    """A sequence grows in a loop, as exporters write lists."""
    empty = chain.add("SequenceEmpty", [])
    nodes = [
        helper.make_node("Identity", ["go"], ["still"]),
        helper.make_node("Tanh", [value], ["one"]),
        helper.make_node("SequenceInsert", ["s", "one"], ["made"]),
    ]
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    reads = [_info("i", INT64, ()), _info("go", BOOL, ()), helper.make_value_info("s", kind)]
    body = helper.make_graph(nodes, "body", reads, [_info("still", BOOL, ()), helper.make_value_info("made", kind)])
    held = chain.add("Loop", [chain.constant(3, np.int64), "", empty], body=body)
    return chain.tell(chain.add("SequenceAt", [held, chain.constant(1, np.int64)]))


def scan_over_columns(chain: Chain, value: str) -> str:
    """Backwards, along the second axis, with a captured vector."""
    offset = chain.constant(np.ones(chain.rows))
    nodes = [helper.make_node("Add", ["s", "c"], ["s1"]), helper.make_node("Mul", ["s1", offset], ["s2"])]
    nodes.append(helper.make_node("Tanh", ["s2"], ["o"]))
    told = [_info(name, shape=(chain.rows,)) for name in ("s", "c", "s2", "o")]
    body = helper.make_graph(nodes, "body", told[:2], told[2:])
    how = {"scan_input_axes": [1], "scan_output_axes": [1], "scan_input_directions": [1]}
    chain.add("Scan", [chain.constant(np.zeros(chain.rows)), value], 2, body=body, num_scan_inputs=1, **how)
    return chain.last[1]


def function_with_attribute(chain: Chain, value: str) -> str:
    leaky = helper.make_node("LeakyRelu", ["a"], ["l"])
    slope = leaky.attribute.add()
    slope.name, slope.ref_attr_name, slope.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    nodes = [leaky, helper.make_node("Exp", ["l"], ["e"]), helper.make_node("Tanh", ["e"], ["b"])]
    opsets = [helper.make_opsetid("", OPSET)]
    chain.functions.append(helper.make_function("own.ops", "Leak", ["a"], ["b"], nodes, opsets, ["slope"]))
    chain.domains.add("own.ops")
    return chain.add("Leak", [value], domain="own.ops", slope=0.2)


def function_in_branch(chain: Chain, value: str) -> str:
    nodes = [helper.make_node("Concat", ["a"] * 6, ["w"], axis=0), helper.make_node("ReduceSum", ["w"], ["s"])]
    nodes.append(helper.make_node("Add", ["a", "s"], ["b"]))
    chain.functions.append(
        helper.make_function("own.ops", "Wide", ["a"], ["b"], nodes, [helper.make_opsetid("", OPSET)])
    )
    chain.domains.add("own.ops")
    then = _branch([helper.make_node("Wide", [value], ["t"], domain="own.ops")], "t")
    other = _branch([helper.make_node("Neg", [value], ["e"])], "e")
    return chain.tell(chain.add("If", [_positive(chain, value)], then_branch=then, else_branch=other))


def empty(chain: Chain, value: str) -> str:
    """Nothing, joined to something; a product over nothing, which is zero."""
    none = chain.add("Slice", [value, chain.shape(0), chain.shape(0), chain.shape(0)])
    thin = chain.add("Slice", [value, chain.shape(0), chain.shape(0), chain.shape(1)])
    zero = chain.add("MatMul", [thin, chain.constant(np.zeros((0, chain.width)))])
    return chain.add("Add", [chain.add("Concat", [value, none], axis=0), zero])


def sparse(chain: Chain, value: str) -> str:
    """A weight of which the file has only what is not zero."""
    size = chain.width
    values = numpy_helper.from_array(np.ones(size, np.float32), "sparse_w")
    places = numpy_helper.from_array(np.arange(size, dtype=np.int64) * (size + 1), "sparse_w_places")
    chain.sparse.append(helper.make_sparse_tensor(values, places, [size, size]))
    return chain.add("Tanh", [chain.add("MatMul", [value, "sparse_w"])])


def optional(chain: Chain, value: str) -> str:
    held = chain.add("Optional", [value])
    return chain.tell(chain.add("OptionalGetElement", [held]))


def optional_asked(chain: Chain, value: str) -> str:
    held = chain.add("OptionalHasElement", [value])
    return chain.add("Where", [held, value, chain.add("Neg", [value])])


def sequence_split(chain: Chain, value: str) -> str:
    held = chain.add("SplitToSequence", [value, chain.constant(16, np.int64)], axis=0)
    return chain.tell(chain.add("ConcatFromSequence", [held], axis=0))


def joined_words(chain: Chain, value: str) -> str:
    chain.opset = 20
    chain.inputs.append(_info("words", TensorProto.STRING, (64,)))
    joined = chain.add("StringConcat", ["words", "words"])
    chain.returns(chain.add("Equal", [joined, "words"]), BOOL)
    chain.returns(joined, TensorProto.STRING)
    return value


def unique(chain: Chain, value: str) -> str:
    chain.returns(chain.add("Unique", [value], 4), FLOAT)
    return value


def compress(chain: Chain, value: str) -> str:
    kept = chain.constant(np.arange(chain.rows) % 2 == 0, np.bool_)
    half = chain.add("Compress", [value, kept], axis=0)
    chain.returns(half)
    return value


def conv_linear(chain: Chain, value: str) -> str:
    scale = [chain.constant(1 / 64), chain.constant(0, np.int8)]
    image = chain.add("Reshape", [value, chain.shape(1, 8, chain.rows // 8, chain.width)])
    weight = chain.constant(chain.numbers.integers(-64, 64, (8, 8, 3, 3)), np.int8)
    made = chain.add(
        "QLinearConv", [chain.add("QuantizeLinear", [image, *scale]), *scale, weight, *scale, *scale], pads=[1, 1, 1, 1]
    )
    return chain.add("Reshape", [chain.add("DequantizeLinear", [made, *scale]), chain.shape(chain.rows, chain.width)])


def conv_by_columns(chain: Chain, value: str) -> str:
    """Quantized by channel, and what optimizers make of that."""
    image = chain.add("Reshape", [value, chain.shape(1, 8, chain.rows // 8, chain.width)])
    scale = [chain.constant(1 / 64), chain.constant(0, np.int8)]
    read = chain.add("DequantizeLinear", [chain.add("QuantizeLinear", [image, *scale]), *scale])
    weight = chain.constant(chain.numbers.integers(-64, 64, (8, 8, 3, 3)), np.int8)
    each = [chain.constant(np.linspace(0.01, 0.02, 8)), chain.constant(np.zeros(8), np.int8)]
    made = chain.add("Conv", [read, chain.add("DequantizeLinear", [weight, *each], axis=0)], pads=[1, 1, 1, 1])
    made = chain.add("DequantizeLinear", [chain.add("QuantizeLinear", [made, *scale]), *scale])
    return chain.add("Reshape", [made, chain.shape(chain.rows, chain.width)])


def four_bits(chain: Chain, value: str) -> str:
    chain.opset = 21
    weight = helper.make_tensor(
        "w_int4", TensorProto.INT4, [chain.width, chain.width], chain.numbers.integers(-8, 8, chain.width**2).tolist()
    )
    chain.weights["w_int4"] = weight
    scales = chain.constant(np.full((chain.width // 16, chain.width), 0.02))
    read = chain.add("DequantizeLinear", ["w_int4", scales], axis=0, block_size=16)
    return chain.add("Tanh", [chain.add("MatMul", [value, read])])


def eight_bit_floats(chain: Chain, value: str) -> str:
    chain.opset = 19
    return chain.add("Cast", [chain.add("Cast", [value], to=TensorProto.FLOAT8E4M3FN)], to=FLOAT)


def half_image(chain: Chain, value: str) -> str:
    """Convolution, normalization and softmax in half precision."""
    image = chain.add(
        "Reshape", [chain.add("Cast", [value], to=FLOAT16), chain.shape(1, 8, chain.rows // 8, chain.width)]
    )
    weight = chain.constant(chain.numbers.standard_normal((8, 8, 3, 3)) / 8, np.float16)
    made = chain.add("Conv", [image, weight], pads=[1, 1, 1, 1])
    made = chain.add("Softmax", [made], axis=3)
    one, none = chain.constant(np.ones(chain.width), np.float16), chain.constant(np.zeros(chain.width), np.float16)
    made = chain.add("LayerNormalization", [made, one, none])
    return chain.add("Cast", [chain.add("Reshape", [made, chain.shape(chain.rows, chain.width)])], to=FLOAT)


def half_in_branch(chain: Chain, value: str) -> str:
    nodes = [
        helper.make_node("Cast", [value], ["h"], to=FLOAT16),
        helper.make_node("Tan", ["h"], ["h2"]),
        helper.make_node("Cast", ["h2"], ["t"], to=FLOAT),
    ]
    other = _branch([helper.make_node("Neg", [value], ["e"])], "e")
    return chain.tell(chain.add("If", [_positive(chain, value)], then_branch=_branch(nodes, "t"), else_branch=other))


def gru_all(chain: Chain, value: str) -> str:
    """With bias, lengths and a first state, both ways, its last states read."""
    steps, batch, hidden = chain.rows // 8, 8, chain.width // 2
    rows = chain.add("Reshape", [value, chain.shape(steps, batch, chain.width)])
    reads = [rows, chain.weight(2, 3 * hidden, chain.width), chain.weight(2, 3 * hidden, hidden)]
    lengths = chain.constant(np.arange(batch) % steps + 1, np.int32)
    reads += [chain.weight(2, 6 * hidden), lengths, chain.weight(2, batch, hidden)]
    made = chain.add("GRU", reads, 2, hidden_size=hidden, direction="bidirectional", linear_before_reset=1)
    chain.returns(chain.last[1])
    turned = chain.add("Transpose", [made], perm=[0, 2, 1, 3])
    return chain.add("Reshape", [turned, chain.shape(chain.rows, chain.width)])


def lstm_cell_read(chain: Chain, value: str) -> str:
    """Peepholes, and only the last cell's state is read."""
    steps, batch, hidden = chain.rows // 8, 8, chain.width
    rows = chain.add("Reshape", [value, chain.shape(steps, batch, chain.width)])
    reads = [rows, chain.weight(1, 4 * hidden, chain.width), chain.weight(1, 4 * hidden, hidden)]
    reads += [chain.weight(1, 8 * hidden), "", "", "", chain.weight(1, 3 * hidden)]
    chain.add("LSTM", reads, 3, hidden_size=hidden)
    chain.nodes[-1].output[0] = chain.nodes[-1].output[1] = ""
    cell = chain.add("Reshape", [f"v{len(chain.nodes) - 1}_2", chain.shape(1, batch, hidden)])
    return chain.add("Reshape", [chain.add("Add", [rows, cell]), chain.shape(chain.rows, chain.width)])


def batch_norm(chain: Chain, value: str) -> str:
    """In training: its running statistics are outputs."""
    one, none = (chain.constant(np.full(chain.width, number)) for number in (1.0, 0.0))
    reads = [value, one, none, none, one]
    made = chain.add("BatchNormalization", reads, 3, training_mode=1)
    for name in chain.last[1:]:
        chain.returns(name)
    return made


def layer_norm(chain: Chain, value: str) -> str:
    """Mean and deviation are read as well."""
    one, none = (chain.constant(np.full(chain.width, number)) for number in (1.0, 0.0))
    made = chain.add("LayerNormalization", [value, one, none], 3)
    _, mean, deviation = chain.last
    return chain.add("Add", [made, chain.add("Mul", [mean, deviation])])


def attention(chain: Chain, value: str) -> str:
    chain.opset = 23
    read = chain.add("Reshape", [value, chain.shape(4, chain.rows // 4, chain.width)])
    made = chain.add("Attention", [read] * 3, q_num_heads=4, kv_num_heads=4)
    return chain.tell(chain.add("Reshape", [made, chain.shape(chain.rows, chain.width)]))


def root_norm(chain: Chain, value: str) -> str:
    chain.opset = 23
    return chain.add("RMSNormalization", [value, chain.constant(np.ones(chain.width))])


def own_ops(chain: Chain, value: str) -> str:
    """Ops of onnxruntime's own domain, as optimized files have them."""
    chain.domains.add("com.microsoft")
    bias = chain.constant(np.ones(chain.width))
    made = chain.add("BiasGelu", [value, bias], domain="com.microsoft")
    skip = [made, value, bias, bias]
    made = chain.add("SkipLayerNormalization", skip, domain="com.microsoft", epsilon=1e-5)
    product = chain.add("FusedMatMul", [made, chain.weight(chain.width, chain.width)], domain="com.microsoft", transB=1)
    return chain.tell(product)


def folded(chain: Chain, value: str) -> str:
    """A large constant made of small ones, which optimizers make once and for all."""
    large = chain.add("Expand", [chain.constant(np.ones((1, chain.width))), chain.shape(chain.rows, chain.width)])
    return chain.add("Mul", [value, chain.add("Exp", [chain.add("Exp", [large])])])


def weight_read_and_returned(chain: Chain, value: str) -> str:
    """Optimizers and packing both want it, and so does who asks for it."""
    chain.returns("w0")
    chain.returns(chain.add("Transpose", ["w0"], perm=[1, 0]))
    return chain.add("Tanh", [chain.add("MatMul", [value, "w0"])])


def view_of_output(chain: Chain, value: str) -> str:
    made = chain.add("Exp", [value])
    chain.returns(made)
    flat = chain.add("Reshape", [made, chain.shape(-1)])
    chain.returns(flat)
    chain.returns(chain.add("Unsqueeze", [flat, chain.shape(0)]))
    return chain.add("Neg", [made])


def input_handed_through(chain: Chain, value: str) -> str:
    chain.returns(chain.add("Identity", ["x"]))
    chain.returns(chain.add("Reshape", ["x", chain.shape(-1)]))
    return value


def places(chain: Chain, value: str) -> str:
    """Kernels that copy their indices."""
    index = chain.constant(chain.numbers.integers(0, chain.rows, (chain.rows, chain.width)), np.int64)
    made = chain.add("GatherElements", [value, index], axis=0)
    made = chain.add("ScatterElements", [value, index, made], axis=0, reduction="add")
    best = chain.add("TopK", [made, chain.shape(chain.width)], 2, axis=1)
    return chain.add("Tanh", [best])


def where_largest(chain: Chain, value: str) -> str:
    running = chain.add("CumSum", [value, chain.constant(1, np.int64)])
    mask = chain.add("Greater", [running, chain.add("Neg", [running])])
    return chain.add("Where", [mask, value, chain.add("Neg", [value])])


def dynamic_product(chain: Chain, value: str) -> str:
    chain.domains.add("com.microsoft")
    weight = chain.constant(chain.numbers.integers(-64, 64, (chain.width, chain.width)), np.int8)
    reads = [value, weight, chain.constant(1 / 512), chain.constant(0, np.int8)]
    return chain.tell(chain.add("Tanh", [chain.add("DynamicQuantizeMatMul", reads, domain="com.microsoft")]))


def transposed_image(chain: Chain, value: str) -> str:
    """Transposes, which optimizers push about."""
    image = chain.add("Reshape", [value, chain.shape(1, chain.rows // 8, chain.width, 8)])
    first = chain.add("Transpose", [image], perm=[0, 3, 1, 2])
    made = chain.add("Conv", [first, chain.weight(8, 8, 3, 3)], pads=[1, 1, 1, 1])
    made = chain.add("Transpose", [chain.add("Relu", [made])], perm=[0, 2, 3, 1])
    chain.returns(chain.add("ReduceSum", [made, chain.shape(0, 1, 2)], keepdims=0))
    return chain.add("Reshape", [made, chain.shape(chain.rows, chain.width)])


NESTED: dict[str, Twist] = {
    "if_hands_through": if_hands_through,
    "if_known": if_known,
    "if_in_if": if_in_if,
    "loop_in_loop": loop_in_loop,
    "loop_while": loop_while,
    "loop_of_sequence": loop_of_sequence,
    "scan_over_columns": scan_over_columns,
    "function_with_attribute": function_with_attribute,
    "function_in_branch": function_in_branch,
    "half_in_branch": half_in_branch,
}
ODD_VALUES: dict[str, Twist] = {
    "empty": empty,
    "sparse": sparse,
    "optional": optional,
    "optional_asked": optional_asked,
    "sequence_split": sequence_split,
    "joined_words": joined_words,
    "unique": unique,
    "compress": compress,
    "weight_read_and_returned": weight_read_and_returned,
    "view_of_output": view_of_output,
    "input_handed_through": input_handed_through,
}
NARROW: dict[str, Twist] = {
    "conv_linear": conv_linear,
    "conv_by_columns": conv_by_columns,
    "four_bits": four_bits,
    "eight_bit_floats": eight_bit_floats,
    "half_image": half_image,
    "dynamic_product": dynamic_product,
}
WIDE: dict[str, Twist] = {
    "gru_all": gru_all,
    "lstm_cell_read": lstm_cell_read,
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "attention": attention,
    "root_norm": root_norm,
    "own_ops": own_ops,
    "folded": folded,
    "places": places,
    "where_largest": where_largest,
    "transposed_image": transposed_image,
}
