"""Subgraphs and functions."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.remat_cli.kinds.chain import FLOAT, INT64, OPSET, Chain, Twist

OWN = "own.ops"


KINDS_OF = {"i": INT64, "go": TensorProto.BOOL, "still": TensorProto.BOOL}  # what a Loop counts and asks by


def _info(name: str, shape: tuple[int, ...] | None) -> onnx.ValueInfoProto:
    kind = KINDS_OF.get(name)
    return helper.make_tensor_value_info(name, kind or FLOAT, () if kind else shape)


def _graph(
    name: str, nodes: list[onnx.NodeProto], reads: list[str], makes: list[str], shape: tuple[int, ...] | None = None
) -> onnx.GraphProto:
    told, made = ([_info(one, shape) for one in names] for names in (reads, makes))
    return helper.make_graph(nodes, name, told, made)


def _wide(read: str, make: str, tag: str) -> list[onnx.NodeProto]:
    """Works in four times what it reads."""
    return [
        helper.make_node("Concat", [read] * 4, [f"{tag}_wide"], f"{tag}_concat", axis=0),
        helper.make_node("Tanh", [f"{tag}_wide"], [f"{tag}_tanh"], f"{tag}_tanh"),
        helper.make_node(
            "Split", [f"{tag}_tanh"], [make, *(f"{tag}_{k}" for k in range(3))], f"{tag}_split", num_outputs=4
        ),
    ]


def _if(chain: Chain, value: str, more_than: float) -> str:
    total = chain.add("ReduceSum", [chain.add("Mul", [value, value])], keepdims=0)
    wanted = chain.add("Greater", [total, chain.constant(more_than)])
    then = _graph("then", _wide(value, "t", "a"), [], ["t"])
    other = _graph("other", [helper.make_node("Neg", [value], ["e"], "e_neg")], [], ["e"])
    return chain.add("If", [wanted], then_branch=then, else_branch=other)


def _loop(chain: Chain, value: str, body: list[onnx.NodeProto], trips: int, scans: tuple[str, ...] = ()) -> str:
    still = helper.make_node("Identity", ["go"], ["still"], "still_copy")
    shape = (chain.rows, chain.width)
    graph = _graph("body", [still, *body], ["i", "go", "h"], ["still", "made", *scans], shape)
    return chain.tell(chain.add("Loop", [chain.constant(trips, np.int64), "", value], 1 + len(scans), body=graph))


def loop(chain: Chain, value: str) -> str:
    weight = chain.weight(chain.width, chain.width)
    body = [helper.make_node("MatMul", ["h", weight], ["p"], "p"), helper.make_node("Tanh", ["p"], ["made"], "t")]
    return _loop(chain, value, body, 4)


def loop_with_scan(chain: Chain, value: str) -> str:
    body = [helper.make_node("Tanh", ["h"], ["made"], "t"), helper.make_node("Neg", ["made"], ["seen"], "s")]
    made = _loop(chain, value, body, 6, ("seen",))
    mean = chain.add("ReduceMean", [chain.nodes[-1].output[1], chain.shape(0)], keepdims=0)
    return chain.add("Add", [made, mean])


def loop_late_capture(chain: Chain, value: str) -> str:
    early = chain.saved[0]
    body = [helper.make_node("Add", ["h", early], ["p"], "p"), helper.make_node("Tanh", ["p"], ["made"], "t")]
    return _loop(chain, value, body, 3)


def loop_of_none(chain: Chain, value: str) -> str:
    return _loop(chain, value, [helper.make_node("Exp", ["h"], ["made"], "t")], 0)


def loop_around_if(chain: Chain, value: str) -> str:
    then = _graph("then", _wide("h", "t2", "n"), [], ["t2"])
    other = _graph("other", [helper.make_node("Neg", ["h"], ["e2"], "n_neg")], [], ["e2"])
    body = [helper.make_node("If", ["go"], ["made"], "inner", then_branch=then, else_branch=other)]
    return _loop(chain, value, body, 2)


def scan(chain: Chain, value: str) -> str:
    """Running sums over rows."""
    nodes = [helper.make_node("Add", ["s", "row"], ["s2"], "s_add"), helper.make_node("Tanh", ["s2"], ["o"], "o_tanh")]
    one = [helper.make_tensor_value_info(name, FLOAT, [chain.width]) for name in ("s", "row", "s2", "o")]
    body = helper.make_graph(nodes, "body", one[:2], one[2:])
    chain.add("Scan", [chain.constant(np.zeros(chain.width)), value], 2, body=body, num_scan_inputs=1)
    return chain.last[1]


def _function(chain: Chain, name: str, nodes: list[onnx.NodeProto], inner: bool = False) -> None:
    opsets = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(OWN, 1)] if inner else [])]
    chain.functions.append(helper.make_function(OWN, name, ["a"], ["b"], nodes, opsets))
    chain.domains.add(OWN)


def _number(name: str, value: float) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, np.float32)))


def _gated() -> list[onnx.NodeProto]:
    made = [("Sigmoid", ["a"], ["s"]), ("Mul", ["a", "s"], ["m"]), ("Exp", ["m"], ["e"]), ("Tanh", ["e"], ["b"])]
    return [helper.make_node(kind, reads, makes) for kind, reads, makes in made]


def function(chain: Chain, value: str) -> str:
    _function(chain, "Gate", _gated())
    return chain.add("Gate", [value], domain=OWN)


def function_in_function(chain: Chain, value: str) -> str:
    _function(chain, "Gate", _gated())
    twice = [helper.make_node("Gate", ["a"], ["g"], domain=OWN), helper.make_node("Gate", ["g"], ["b"], domain=OWN)]
    _function(chain, "Twice", twice, inner=True)
    return chain.add("Twice", [value], domain=OWN)


def function_twice(chain: Chain, value: str) -> str:
    _function(chain, "Gate", _gated())
    return chain.add("Add", [chain.add("Gate", [value], domain=OWN), chain.add("Gate", [value], domain=OWN)])


def function_with_noise(chain: Chain, value: str) -> str:
    noise = [helper.make_node("RandomNormalLike", ["a"], ["r"], seed=3.0), helper.make_node("Add", ["a", "r"], ["b"])]
    _function(chain, "Noise", noise)
    return chain.add("Noise", [value], domain=OWN)


def function_with_if(chain: Chain, value: str) -> str:
    then, other = (
        _graph("then", _wide("a", "t", "f"), [], ["t"]),
        _graph("o", [helper.make_node("Neg", ["a"], ["e"])], [], ["e"]),
    )
    nodes = [
        helper.make_node("ReduceSum", ["a"], ["s"], keepdims=0),
        _number("far", 1e9),
        helper.make_node("Less", ["s", "far"], ["c"]),
        helper.make_node("If", ["c"], ["b"], then_branch=then, else_branch=other),
    ]
    _function(chain, "Choose", nodes)
    return chain.add("Choose", [value], domain=OWN)


def cast_like(chain: Chain, value: str) -> str:
    return chain.add("Mul", [value, chain.add("CastLike", [chain.constant(2, np.int64), value])])


def group_norm(chain: Chain, value: str) -> str:
    image = chain.add("Reshape", [value, chain.shape(chain.rows // 8, 8, chain.width // 8, 8)])
    ones, zeros = chain.constant(np.ones(4)), chain.constant(np.zeros(4))
    made = chain.add("GroupNormalization", [image, ones, zeros], num_groups=4)
    return chain.add("Reshape", [made, chain.shape(chain.rows, chain.width)])


def loss_op(chain: Chain, value: str) -> str:
    """A loss on the way, whose log-probabilities are read again."""
    labels = chain.constant(chain.numbers.integers(0, chain.width, chain.rows), np.int64)
    chain.returns(chain.add("SoftmaxCrossEntropyLoss", [value, labels], 2, reduction="mean"))
    return chain.add("Tanh", [chain.last[1]])


CONTROL: dict[str, Twist] = {
    "if_wide": lambda chain, value: _if(chain, value, 0.0),
    "if_narrow": lambda chain, value: _if(chain, value, 1e9),
    "loop": loop,
    "loop_with_scan": loop_with_scan,
    "loop_late_capture": loop_late_capture,
    "loop_of_none": loop_of_none,
    "loop_around_if": loop_around_if,
    "scan": scan,
}
FUNCTIONS: dict[str, Twist] = {
    "function": function,
    "function_in_function": function_in_function,
    "function_twice": function_twice,
    "function_with_noise": function_with_noise,
    "function_with_if": function_with_if,
    "hard_swish": lambda chain, value: chain.add("HardSwish", [value]),
    "mish": lambda chain, value: chain.add("Mish", [value]),
    "cast_like": cast_like,
    "group_norm": group_norm,
    "loss_op": loss_op,
}
