"""Ops that make each element of the elements at the same place: any axis will do."""

from __future__ import annotations

from collections.abc import Iterator

from remat_cli.pieces.ways import AlongAxis, Call, Row, Shape, Way


def aligned(shape: Shape | None, out: Shape, axis: int) -> AlongAxis | None:
    """The input's axis under the output's, if it is not spread along that."""
    if shape is None:
        return None
    own = axis - (len(out) - len(shape))
    return AlongAxis(own) if own >= 0 and shape[own] == out[axis] and out[axis] > 1 else None


def pointwise(call: Call) -> Iterator[Way]:
    for axis, size in enumerate(call.made):
        if size > 1:
            inputs = tuple(aligned(shape, call.made, axis) for shape in call.reads)
            yield Way(f"axis {axis}", inputs, call.results(axis), exact=call.op.op_type not in BY_PACKETS)


def carried(call: Call) -> Iterator[Way]:
    """The same of a copy, in which indices stay what they are."""
    for way in pointwise(call):
        yield Way(way.name, way.inputs, way.outputs, carries=True)


def dropout(call: Call) -> Iterator[Way]:
    """Pieces would draw other numbers than the whole."""
    if not call.given(2):
        yield from pointwise(call)


# fmt: off
POINTWISE = (
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh",
    "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg",
    "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
)
# Their kernels work on several elements at once, and on what is left over at an end in another way.
BY_PACKETS = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Log", "Mish", "Selu", "Sin",
    "Sinh", "Softplus", "Tan",
)
FUSED = ("BiasGelu", "FastGelu", "Gelu", "QuickGelu")
# fmt: on

ROWS: dict[tuple[str, str], Row] = {
    **{("", name): pointwise for name in POINTWISE},
    **{("com.microsoft", name): pointwise for name in FUSED},
    ("", "Cast"): carried,
    ("", "Identity"): carried,
    ("", "Dropout"): dropout,
}
