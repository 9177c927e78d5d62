"""Logarithms of what PyTorch computes as one op and its exporter writes out, where 0 or infinity comes between.

PyTorch's `logsigmoid` and `binary_cross_entropy_with_logits` are finite wherever their inputs are. In float32 a Log of
a Sigmoid is infinite for logits far below 0, where it was seen at -60, and a Log of a sum of two Exp above 88.

Invariant: where both are finite, both forms are the same function.
"""

from __future__ import annotations

from remat_cli.gradient.tape import Tape, Taped
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.tracing import TracerLike


def log(tracer: TracerLike, step: Taped, active: bool) -> list[Tensor | None] | None:
    """log(sigmoid(x)) as -softplus(-x), and log(exp(a) + exp(b)) as a + softplus(b - a)."""
    inner = _maker(step.tape, step.x)
    if inner is None:
        return None
    with step.tape.recording():
        if inner.kind == "Sigmoid":
            return [-(-inner.x).apply("Softplus")]
        exponents = _exponents(inner)
        if exponents is None:
            return None
        a, b = exponents
        return [a + (b - a).apply("Softplus")]


def _exponents(step: Taped) -> tuple[Tensor, Tensor] | None:
    """a and b, where the step is exp(a) + exp(b)."""
    if step.kind != "Add":
        return None
    one, other = (_maker(step.tape, step.input(index)) for index in range(2))
    if one is None or other is None or (one.kind, other.kind) != ("Exp", "Exp"):
        return None
    return one.x, other.x


def _maker(tape: Tape, value: Tensor) -> Taped | None:
    """The step that makes the value; None for an input or a constant."""
    made = (step for step in reversed(tape.steps) if any(out and out.name == value.name for out in step.outputs))
    return next(made, None)
