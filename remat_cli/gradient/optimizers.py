"""Optimizers: the updated parameter and state from a parameter, its gradient and its state.

Invariant: state goes in as inputs and comes out as `<name>_new`; formulas and defaults are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import reduce
from operator import add
from typing import Any

import onnx

from remat_cli.errors import BadInput, Usage, meant
from remat_cli.gradient.exported import first_of
from remat_cli.gradient.tape import Tape
from remat_cli.gradient.tensor import Tensor

RATE = "learning_rate"
STEP = "step"  # a scalar: how many updates were made before this one; it comes out as step_new
DECAY = 0.01  # AdamW's decay where the user names none
MOMENTS = ("weight_decay", "beta1", "beta2", "epsilon")
TOLD = {"sgd": ("weight_decay",), "momentum": ("weight_decay", "momentum"), "adam": MOMENTS, "adamw": MOMENTS}
# the users' names of settings
SHOWN = {"rate": "learning_rate", "epsilon": "eps", "scale": "the learning rate of a group"}
NORM_EPSILON = 1e-6  # PyTorch's clip_grad_norm_ adds this to the norm


@dataclass(frozen=True, slots=True)
class Hyper:
    """The settings of an optimizer for a parameter. `weight_decay`: None is PyTorch's default, 0.01 for AdamW and 0
    otherwise; `scale`: the parameter's own learning rate divided by the step's."""

    rate: float = 0.01
    momentum: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters with settings of their own. `names`: patterns like those of file names; each must match a
    parameter."""

    names: tuple[str, ...]
    changes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How parameters are updated: the first of `groups` that names a parameter applies, otherwise `hyper`.

    `clip`: the greatest norm of all gradients together; they are scaled down to it.
    """

    name: str = "none"
    hyper: Hyper = field(default_factory=Hyper)
    groups: tuple[Group, ...] = ()
    clip: float | None = None

    def check(self) -> None:
        """Refuse settings that have no meaning or no effect."""
        if self.name not in ("none", *OPTIMIZERS):
            raise Usage(f"there is no optimizer '{self.name}'; {meant(self.name, ('none', *OPTIMIZERS))}")
        if self.name == "none" and (self.groups or self.clip is not None):
            raise Usage("groups and clipping are an optimizer's: say --optimizer as well")
        if self.clip is not None and not self.clip > 0:
            raise Usage(f"gradients cannot be clipped to a norm of {self.clip:g}")
        for hyper in (self.hyper, *(self._changed(group) for group in self.groups)):
            for name in ("rate", "momentum", "epsilon", "weight_decay", "scale"):
                value = getattr(hyper, name)
                if value is not None and not 0 <= value < float("inf"):
                    raise Usage(f"{SHOWN.get(name, name)} is at least 0, not {value:g}")
            if not (0 <= hyper.beta1 < 1 and 0 <= hyper.beta2 < 1):
                raise Usage(f"betas are at least 0 and below 1, not {hyper.beta1:g},{hyper.beta2:g}")

    def of(self, parameter: str) -> Hyper:
        """The settings of the parameter."""
        for group in self.groups:
            if any(fnmatchcase(parameter, name) for name in group.names):
                return self._changed(group)
        return self.hyper

    def check_names(self, parameters: Iterable[str]) -> None:
        """Refuse a group that names no parameter."""
        known = list(parameters)
        for group in self.groups:
            if not any(fnmatchcase(parameter, name) for parameter in known for name in group.names):
                raise BadInput(
                    f"no parameter matches the group '{', '.join(group.names)}'; there are {first_of(known)}"
                )

    def described(self) -> dict[str, Any]:
        """All settings except the learning rate, which a step may set: for metadata and checkpoints, as JSON values."""
        groups = {", ".join(group.names): dict(group.changes) for group in self.groups}
        hyper = {name: value for name, value in asdict(self.hyper).items() if name in TOLD.get(self.name, ())}
        if self.name == "adamw" and self.hyper.weight_decay is None:
            hyper["weight_decay"] = DECAY
        return {"name": self.name, **hyper, "groups": groups, "clip": self.clip}

    def _changed(self, group: Group) -> Hyper:
        return replace(self.hyper, **group.changes)


@dataclass(slots=True)
class Update:
    """The inputs of one parameter's update besides the gradient, and its outputs."""

    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)


Optimizer = Callable[[Tensor, Tensor, Tensor, Hyper], Update]


class Updates:
    """The updates of all parameters on a tape, each made once its gradient is complete, or with `clip` once all are."""

    def __init__(self, tape: Tape, recipe: Recipe) -> None:
        self.recipe, self.made = recipe, Update()
        self._waiting: list[tuple[Tensor, Tensor]] = []
        if recipe.name == "none":
            return
        self._rate = tape.declare(RATE, onnx.TensorProto.FLOAT, [])
        if recipe.name.startswith("adam"):
            step = tape.declare(STEP, onnx.TensorProto.FLOAT, [])
            self.made = Update({STEP: step}, {STEP: step + 1.0})

    def take(self, parameter: Tensor, gradient: Tensor) -> None:
        """Update a parameter whose gradient is complete, or keep the gradient until all are."""
        if self.recipe.clip is not None:
            self._waiting.append((parameter, gradient))
        elif self.recipe.name != "none":
            self._update(parameter, gradient)

    def finish(self) -> None:
        """Make the updates that waited: all gradients are complete."""
        if not self._waiting or self.recipe.clip is None:
            return
        with self._rate.tape.scope("clip"):
            share = find_clipping_factor([gradient for _, gradient in self._waiting], self.recipe.clip)
        for parameter, gradient in self._waiting:
            with parameter.tape.scope(f"{parameter.name}/clip"):
                clipped = gradient * share.cast(gradient.dtype)
            self._update(parameter, clipped)

    def _update(self, parameter: Tensor, gradient: Tensor) -> None:
        with parameter.tape.scope(f"{parameter.name}/update"):
            hyper = self.recipe.of(parameter.name)
            rate = self._rate if hyper.scale == 1.0 else self._rate * hyper.scale
            made = OPTIMIZERS[self.recipe.name](parameter, gradient, rate, hyper)
        self.made.inputs |= made.inputs
        self.made.outputs |= made.outputs


def find_clipping_factor(gradients: list[Tensor], norm: float) -> Tensor:
    """The factor that scales all gradients so that they have at most that norm together."""
    total = reduce(add, [gradient.cast(onnx.TensorProto.FLOAT).sum_of_squares() for gradient in gradients])
    share = norm / (total.apply("Sqrt") + NORM_EPSILON)
    return share.tape.op("Min", share, share.like(1.0))


def _state(parameter: Tensor, name: str) -> Tensor:
    return parameter.tape.declare(f"{parameter.name}_{name}", parameter.dtype, parameter.shape)


def _add_decay(parameter: Tensor, gradient: Tensor, hyper: Hyper) -> Tensor:
    """The gradient of the loss and half the squared weights times the decay."""
    return gradient + parameter * hyper.weight_decay if hyper.weight_decay else gradient


def _sgd(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    gradient = _add_decay(parameter, gradient, hyper)
    return Update({}, {parameter.name: parameter - gradient * rate.cast(parameter.dtype)})


def _momentum(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    velocity = _state(parameter, "momentum")
    moved = velocity * hyper.momentum + _add_decay(parameter, gradient, hyper)
    updated = parameter - moved * rate.cast(parameter.dtype)
    return Update({velocity.name: velocity}, {parameter.name: updated, velocity.name: moved})


def _adamw(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    """Loshchilov and Hutter, algorithm 2: the decay is subtracted from the parameter, not added to the gradient."""
    update = _adam(parameter, gradient, rate, replace(hyper, weight_decay=None))
    decay = DECAY if hyper.weight_decay is None else hyper.weight_decay
    if decay:
        decayed = parameter * (rate * decay).cast(parameter.dtype)
        update.outputs[parameter.name] = update.outputs[parameter.name] - decayed
    return update


def _adam(parameter: Tensor, gradient: Tensor, rate: Tensor, hyper: Hyper) -> Update:
    """Kingma and Ba, algorithm 1; `rate` and the corrections come as scalars of the step."""
    gradient = _add_decay(parameter, gradient, hyper)
    done = Tensor(rate.tape, STEP) + 1.0
    first, second = _state(parameter, "adam_m"), _state(parameter, "adam_v")
    mean = first * hyper.beta1 + gradient * (1 - hyper.beta1)
    square = second * hyper.beta2 + gradient * gradient * (1 - hyper.beta2)
    correction1, correction2 = (1.0 - rate.tape.op("Pow", rate.like(beta), done) for beta in (hyper.beta1, hyper.beta2))
    step_size = (rate / correction1).cast(parameter.dtype)
    root = correction2.apply("Sqrt").cast(parameter.dtype)
    updated = parameter - mean / (square.apply("Sqrt") / root + hyper.epsilon) * step_size
    return Update(
        {first.name: first, second.name: second}, {parameter.name: updated, first.name: mean, second.name: square}
    )


OPTIMIZERS: Mapping[str, Optimizer] = {"sgd": _sgd, "momentum": _momentum, "adam": _adam, "adamw": _adamw}
