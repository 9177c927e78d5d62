"""Optimizers: from a parameter, its gradient and its state to the updated ones.

Invariant: state goes in as inputs and comes out under `<name>_new`; formulas and defaults are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from remat_cli.gradient.tensor import Tensor

RATE = "learning_rate"
STEP = "step"  # how many updates were made before this one: a scalar that goes in and comes out as step_new


@dataclass(frozen=True, slots=True)
class Hyper:
    rate: float = 0.01
    momentum: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.01  # AdamW's


@dataclass(slots=True)
class Update:
    """What one parameter's update reads besides the gradient, and what it writes."""

    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)


Optimizer = Callable[[Tensor, Tensor, Tensor, Hyper], Update]


def _state(parameter: Tensor, name: str) -> Tensor:
    return parameter.tape.declare(f"{parameter.name}_{name}", parameter.dtype, parameter.shape)


def _sgd(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    return Update({}, {parameter.name: parameter - gradient * rate.cast(parameter.dtype)})


def _momentum(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    velocity = _state(parameter, "momentum")
    moved = velocity * hyper.momentum + gradient
    updated = parameter - moved * rate.cast(parameter.dtype)
    return Update({velocity.name: velocity}, {parameter.name: updated, velocity.name: moved})


def _adam(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    """Kingma and Ba, algorithm 1; `rate` and the corrections come as scalars of the step."""
    first, second = _state(parameter, "adam_m"), _state(parameter, "adam_v")
    mean = first * hyper.beta1 + gradient * (1 - hyper.beta1)
    square = second * hyper.beta2 + gradient * gradient * (1 - hyper.beta2)
    correction1, correction2 = _corrections(rate, hyper)
    step_size = (rate / correction1).cast(parameter.dtype)
    root = correction2.apply("Sqrt").cast(parameter.dtype)
    updated = parameter - mean / (square.apply("Sqrt") / root + hyper.epsilon) * step_size
    return Update(
        {first.name: first, second.name: second}, {parameter.name: updated, first.name: mean, second.name: square}
    )


def _adamw(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    """Loshchilov and Hutter, algorithm 2: the decay is taken off the parameter, not added to the gradient."""
    update = _adam(parameter, gradient, rate, hyper)
    decayed = parameter * (rate * hyper.decay).cast(parameter.dtype)
    update.outputs[parameter.name] = update.outputs[parameter.name] - decayed
    return update


def _corrections(rate: Tensor, hyper: Hyper) -> tuple[Tensor, Tensor]:
    tape = rate.tape
    done = Tensor(tape, STEP) + 1.0
    first, second = (1.0 - tape.op("Pow", rate.like(beta), done) for beta in (hyper.beta1, hyper.beta2))
    return first, second


OPTIMIZERS: Mapping[str, Optimizer] = {"sgd": _sgd, "momentum": _momentum, "adam": _adam, "adamw": _adamw}
