"""Sizes and courses that depend on data, and what only onnxruntime or a function's own words tell."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.remat_cli.kinds.chain import FLOAT, INT64, OPSET, Chain, Twist
from tests.remat_cli.kinds.unusual import _body, _branch, _info, _positive


def chosen(chain: Chain, value: str) -> str:
    """The mean of what is above zero."""
    places = chain.add("Transpose", [chain.add("NonZero", [chain.add("Relu", [value])])])
    mean = chain.add("ReduceMean", [chain.add("GatherND", [value, places])], keepdims=0)
    return chain.add("Add", [value, mean])


def kept_rows(chain: Chain, value: str) -> str:
    means = chain.add("ReduceMean", [value, chain.shape(1)], keepdims=0)
    rows = chain.add("Compress", [value, chain.add("Greater", [means, chain.constant(0.0)])], axis=0)
    return chain.add("Add", [value, chain.add("ReduceSum", [chain.add("Tanh", [rows]), chain.shape(0)], keepdims=1)])


def distinct(chain: Chain, value: str) -> str:
    """Two results of one op, of sizes that data makes."""
    rounded = chain.add("Round", [chain.add("Mul", [value, chain.constant(9.0)])])
    chain.add("Unique", [rounded], 4)
    chain.nodes[-1].output[1] = chain.nodes[-1].output[2] = ""
    first, _, _, counts = chain.last
    mean = chain.add("ReduceMean", [chain.add("Mul", [first, chain.add("Cast", [counts], to=FLOAT)])], keepdims=0)
    return chain.add("Add", [value, mean])


def branches_of_other_sizes(chain: Chain, value: str) -> str:
    then = _branch([helper.make_node("Concat", [value, value], ["t"], axis=0)], "t")
    other = _branch([helper.make_node("Neg", [value], ["e"])], "e")
    made = chain.add("If", [_positive(chain, value)], then_branch=then, else_branch=other)
    return chain.add("Mul", [value, chain.add("ReduceMean", [made, chain.shape(0)], keepdims=1)])


def loop_that_grows(chain: Chain, value: str) -> str:
    """What it carries is longer after each round, and nothing in the file says how long."""
    row = chain.add("Slice", [value, chain.shape(0), chain.shape(1), chain.shape(0)])
    nodes = [
        helper.make_node("Identity", ["go"], ["still"]),
        helper.make_node("Concat", ["h", row], ["made"], axis=0),
    ]
    body = _body(nodes, [_info("h", FLOAT, ("before", chain.width))], ["made"])
    made = chain.add("Loop", [chain.constant(9, np.int64), "", row], body=body)
    return chain.add("Add", [value, chain.add("ReduceMean", [made, chain.shape(0)], keepdims=1)])


def loop_of_asked_rounds(chain: Chain, value: str) -> str:
    chain.inputs.append(_info("rounds", INT64, ()))
    nodes = [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Tanh", ["h"], ["made"])]
    nodes.append(helper.make_node("Neg", ["made"], ["seen"]))
    body = _body(nodes, [_info("h", shape=(chain.rows, chain.width))], ["made", "seen"])
    chain.add("Loop", ["rounds", "", value], 2, body=body)
    made, seen = chain.last
    chain.returns(seen)
    return made


def endless(chain: Chain, value: str) -> str:
    """A Loop that random inputs never end: not one of the kinds."""
    nodes = [
        helper.make_node("Tanh", ["h"], ["made"]),
        helper.make_node("ReduceMax", ["made"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "low"], ["still"]),
    ]
    chain.constant(-99.0, name="low")
    body = _body(nodes, [_info("h", shape=(chain.rows, chain.width))], ["made"])
    return chain.add("Loop", ["", chain.constant(True, np.bool_), value], body=body)


def boxes(chain: Chain, value: str) -> str:
    corners = chain.add("Reshape", [chain.add("Abs", [value]), chain.shape(1, -1, 4)])
    rows = chain.add("ReduceMean", [chain.add("Reshape", [value, chain.shape(-1, 4)]), chain.shape(1)], keepdims=0)
    scores = chain.add("Reshape", [rows, chain.shape(1, 1, -1)])
    limits = [chain.constant([20], np.int64), chain.constant([0.5])]
    chain.returns(chain.add("NonMaxSuppression", [corners, scores, *limits]), INT64)
    return value


def function_of_defaults(chain: Chain, value: str) -> str:
    leaky = helper.make_node("LeakyRelu", ["a"], ["l"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    nodes, opsets = [leaky, helper.make_node("Exp", ["l"], ["b"])], [helper.make_opsetid("", OPSET)]
    own = [helper.make_attribute("slope", 0.3)]
    chain.functions.append(helper.make_function("own.ops", "Leak", ["a"], ["b"], nodes, opsets, [], own))
    chain.domains.add("own.ops")
    return chain.add("Tanh", [chain.add("Leak", [value], domain="own.ops")])


def attention_over_earlier(chain: Chain, value: str) -> str:
    """What was attended to is handed on, and of that only the keys are read."""
    chain.opset = 23
    length, width = chain.rows // 4, chain.width // 4
    heads = chain.add("Reshape", [value, chain.shape(4, length, 4, width)])
    heads = chain.add("Transpose", [heads], perm=[0, 2, 1, 3])
    earlier = chain.constant(np.ones((4, 4, 2, width)))
    made = chain.add("Attention", [heads, heads, heads, "", earlier, earlier], 4, is_causal=1)
    chain.returns(chain.last[1])
    back = chain.add("Transpose", [made], perm=[0, 2, 1, 3])
    return chain.add("Reshape", [back, chain.shape(chain.rows, chain.width)])


def four_bit_product(chain: Chain, value: str) -> str:
    chain.domains.add("com.microsoft")
    size, blocks = chain.width, chain.width // 16
    weight = chain.constant(chain.numbers.integers(0, 255, (size, blocks, 8)), np.uint8)
    reads = [value, weight, chain.constant(np.full(size * blocks, 0.01))]
    made = chain.add("MatMulNBits", reads, domain="com.microsoft", K=size, N=size, bits=4, block_size=16)
    return chain.add("Tanh", [made])


def sequence_pieces(chain: Chain, value: str) -> str:
    """Split in unequal pieces, asked for from either end, stacked up."""
    half = chain.rows // 2
    parts = chain.constant([half, half // 2, half // 2], np.int64)
    held = chain.add("SplitToSequence", [value, parts], axis=0)
    pieces = [chain.add("SequenceAt", [held, chain.constant(place, np.int64)]) for place in (0, 1, -1)]
    whole = chain.add("Concat", [pieces[2], pieces[1], pieces[0]], axis=0)
    rows = chain.add("SplitToSequence", [whole], axis=0, keepdims=0)
    return chain.tell(chain.add("ConcatFromSequence", [rows], axis=0, new_axis=1))


def sequence_edited(chain: Chain, value: str) -> str:
    held = chain.add("SequenceInsert", [chain.add("SequenceEmpty", []), value])
    held = chain.add("SequenceInsert", [held, chain.add("Exp", [value]), chain.constant(0, np.int64)])
    length = chain.add("Cast", [chain.add("SequenceLength", [held])], to=FLOAT)
    held = chain.add("SequenceErase", [held, chain.constant(1, np.int64)])
    return chain.tell(chain.add("Div", [chain.add("SequenceAt", [held, chain.constant(0, np.int64)]), length]))


def optional_none(chain: Chain, value: str) -> str:
    kind = helper.make_tensor_type_proto(FLOAT, [chain.rows, chain.width])
    held = chain.add("OptionalHasElement", [chain.add("Optional", [], type=kind)])
    return chain.add("Where", [held, value, chain.add("Neg", [value])])


def swish(chain: Chain, value: str) -> str:
    chain.opset = 24
    return chain.add("Swish", [value])


BY_DATA: dict[str, Twist] = {
    "chosen": chosen,
    "kept_rows": kept_rows,
    "distinct": distinct,
    "branches_of_other_sizes": branches_of_other_sizes,
    "loop_that_grows": loop_that_grows,
    "loop_of_asked_rounds": loop_of_asked_rounds,
    "boxes": boxes,
}
SAID_ELSEWHERE: dict[str, Twist] = {
    "function_of_defaults": function_of_defaults,
    "attention_over_earlier": attention_over_earlier,
    "four_bit_product": four_bit_product,
    "swish": swish,
    "sequence_pieces": sequence_pieces,
    "sequence_edited": sequence_edited,
    "optional_none": optional_none,
}
