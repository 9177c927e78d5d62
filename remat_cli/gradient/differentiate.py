"""Reverse-mode differentiation: one pass back over the steps of a tape.

Invariant: a step's rule is called once, when all gradients of its outputs are complete. It is called only if the loss
depends on the step and the step depends on a wanted value. Contributions are added as they arrive, so at most one
waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.gradient.refusals import Refusal, refuse
from remat_cli.gradient.stretches import join_stretches
from remat_cli.gradient.tape import FLOATS, Tape, Taped
from remat_cli.gradient.tensor import Tensor

Rule = Callable[..., "Tensor | Sequence[Tensor | None] | None"]
Finished = Callable[[Tensor, Tensor], None]  # called with a wanted value and its gradient


def differentiate(
    tape: Tape,
    loss: Tensor,
    wanted: Sequence[Tensor],
    rules: Mapping[str, Rule],
    finished: Finished | None = None,
    scale: Tensor | None = None,
) -> dict[str, Tensor]:
    """The gradient of `loss`, times `scale`, for each of the wanted values that it depends on, by name.

    `finished` is called for each gradient as soon as it is complete, so that what it emits stands where the gradient
    can be freed.
    """
    names = {tensor.name for tensor in wanted}
    reached = _depends_on(tape.steps, names)
    gradients = {loss.name: loss.like(1.0) if scale is None else scale}
    steps = join_stretches(tape.steps)
    due = _first_readers(steps, wanted)
    refusals: list[Refusal] = []
    for index in reversed(range(len(steps))):
        step = steps[index]
        arrived = [gradients.get(y.name) if y is not None else None for y in step.outputs]
        if any(arrived) and any(x is not None and x.name in reached for x in step.inputs):
            step.needs = tuple(x is not None and x.name in reached and x.dtype in FLOATS for x in step.inputs)
            with tape.scope(f"{step.name}/grad"):
                if refusal := _step_back(step, arrived, gradients, rules):
                    refusals.append(refusal)
        for tensor in due.get(index, ()):
            if finished is not None and tensor.name in gradients:
                finished(tensor, gradients[tensor.name])
    refuse(refusals)
    return {name: gradients[name] for name in names if name in gradients}


def _first_readers(steps: Sequence[Taped], wanted: Sequence[Tensor]) -> dict[int, list[Tensor]]:
    """For each step, the wanted values that it is the first to read: on the way back it is the last to contribute."""
    waiting = {tensor.name: tensor for tensor in wanted}
    due: dict[int, list[Tensor]] = {}
    for index, step in enumerate(steps):
        for x in step.inputs:
            if x is not None and x.name in waiting:
                due.setdefault(index, []).append(waiting.pop(x.name))
    return due


def _depends_on(steps: Sequence[Taped], names: set[str]) -> set[str]:
    """Every value computed from the named ones."""
    reached = set(names)
    for step in steps:
        if any(x is not None and x.name in reached for x in step.inputs):
            reached.update(y.name for y in step.outputs if y is not None)
    return reached


def _step_back(
    step: Taped, arrived: Sequence[Any], gradients: dict[str, Tensor], rules: Mapping[str, Rule]
) -> Refusal | None:
    """The step's gradients for its inputs. A step that cannot be differentiated is recorded with its reason and passes
    zeros on, so that the steps before it are checked too."""
    refusal, found = None, None
    try:
        if step.kind in rules:
            found = rules[step.kind](step, *arrived)
        else:
            refusal = Refusal(step.kind, step.name)
    except BadInput as refused:
        refusal = Refusal(step.kind, step.name, str(refused))
    if refusal:
        found = [x.zeros(*x.shape) if x is not None and needed else None for x, needed in zip(step.inputs, step.needs)]
    parts = [found] if isinstance(found, Tensor) else list(found or ())
    for x, part, needed in zip(step.inputs, parts, step.needs):
        if x is None or part is None or not needed:
            continue
        part = _fit(step, part, x)
        gradients[x.name] = gradients[x.name] + part if x.name in gradients else part
    return refusal


def _fit(step: Taped, part: Tensor, x: Tensor) -> Tensor:
    """The gradient reduced to the shape of the value, because a rule may leave it broadcast."""
    fitted = part.sum_to(x.shape) if part.rank >= x.rank else part
    if fitted.shape != x.shape:  # shape inference accepts some inputs that no kernel takes
        raise BadInput(
            f"{step.kind} node '{step.name}': an input has the shape {list(x.shape)}, "
            f"and its gradient {list(part.shape)}; the input does not fit the op"
        )
    assert fitted.dtype == x.dtype, f"{step.kind}: a gradient of type {fitted.dtype} for {x.dtype}"
    return fitted
