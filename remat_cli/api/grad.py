"""`remat.grad`: from a forward model to its training graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import onnx

from remat_cli.actions.differentiating import differentiate, notes_of
from remat_cli.actions.exporting import exported, is_program
from remat_cli.actions.recipes import recipe_of
from remat_cli.api.given import (
    EXPORT,
    Model,
    check_keywords,
    items_of,
    model_of,
    names_of,
    sizes_of,
    warn,
)
from remat_cli.api.keywords import OptimizerSettings
from remat_cli.api.modes import check_module, lost_modes
from remat_cli.arguments import brief, switch, whole_number, word
from remat_cli.errors import Usage
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.prepare import Binding
from remat_cli.gradient.training import Options
from remat_cli.onnx_graph.load import load_with_tensors


def grad(
    model: Model | Any,
    *,
    loss: str | None = None,
    logits: str | None = None,
    class_axis: int | None = None,
    outputs: Sequence[str] = (),
    wrt: Sequence[str] = (),
    params: Iterable[str] | Any = (),
    ties: Iterable[tuple[str, str]] = (),
    as_exported: bool = False,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    optimizer: str | Any = "none",
    accumulate: bool = False,
    train: bool = False,
    freeze_bn: bool = False,
    precision: str = "float32",
    **settings: Unpack[OptimizerSettings],
) -> onnx.ModelProto:
    """The training graph of a forward model, as `remat grad` makes it.

    - `model`: a path, or an onnx.ModelProto; or what `torch.export.export` gave, or a path of that (.pt2), whose
      parameters and regions of no_grad are then those of the module.
    - `loss`: "cross-entropy", "mse", or an output that is a scalar loss already; `logits`: the value that the first two
      are taken of, by default the first output; `class_axis`: the axis of it that labels choose from.
    - `outputs`: outputs of the model that the training graph has too, so that a step can give them.
    - `wrt`: names, if these alone are trained. `params`: the PyTorch module itself, of which all is trained that
      requires a gradient, or names, as in `dict(module.named_parameters())`. `ties`: pairs of names that are one
      parameter. `as_exported`: train what stands in the file, whatever an exporter did.
    - `batch`, `shapes`, `dims`: sizes for what the file leaves open: the inputs' first dimension, whole shapes by the
      inputs' names, dimensions by their own.
    - `optimizer`: "sgd", "momentum", "adam" or "adamw", with `learning_rate` (by default 0.01, and an input of the
      step), `weight_decay`, `betas`, `eps` and `momentum`; `groups`: other settings by a pattern of names, as
      {"*.bias": {"weight_decay": 0}}; `clip`: the norm that all gradients together are held to. Or a torch.optim object
      with all of these but `clip`, whose groups are named by `params=module`.
    - `accumulate`: gradients are added to sums that come in, instead of given: for `remat.step(..., accumulate=k)`,
      which then holds each gradient for a moment only. Without an optimizer.
    - `train`: every Dropout and BatchNormalization, whatever mode the file has it in; `freeze_bn`: those in inference
      mode are meant. `precision`: products in "float16" or "bfloat16", the rest in float32.

    Example:

        train = remat.grad("forward.onnx", loss="cross-entropy", optimizer="adamw", weight_decay=0.1)
    """
    check_keywords(settings, grad, OptimizerSettings)
    lost: list[str] = []
    if is_program(model):
        program = exported(model)
        model, params, lost = program.model, params or program, list(program.notes)
    elif hasattr(model, "named_parameters"):
        raise Usage(
            f"this is a PyTorch module: give torch.export.export(module, (example,)), or write a file: {EXPORT}"
        )
    given = load_with_tensors(model_of(model))
    check_module(params, given)
    options = Options(
        loss=None if loss is None else word(loss, "loss"),
        logits=None if logits is None else word(logits, "logits"),
        class_axis=None if class_axis is None else whole_number(class_axis, "class_axis", None),
        outputs=names_of(outputs, "outputs"),
        choice=Choice(
            names_of(wrt, "wrt"),
            ties=_pairs(ties),
            as_exported=switch(as_exported, "as_exported"),
            **_trained(params, optimizer),
        ),
        binding=Binding(_shapes(shapes), None if batch is None else whole_number(batch, "batch", 1), sizes_of(dims)),
        recipe=recipe_of(optimizer, settings, params),
        freeze_bn=switch(freeze_bn, "freeze_bn"),
        train=switch(train, "train"),
        precision=word(precision, "precision"),
        accumulate=switch(accumulate, "accumulate"),
    )
    lost += lost_modes(params, given)
    training = differentiate(given, options)
    warn([*lost, *notes_of(training)])
    return training


def _shapes(given: Mapping[str, Sequence[int]] | None) -> dict[str, list[int]]:
    if given is not None and not isinstance(given, Mapping):
        raise Usage(f"shapes are by name, such as {{'input': (1, 3, 224, 224)}}, not {brief(given)}")
    return {
        name: [whole_number(size, f"shapes[{name!r}]", 1) for size in items_of(shape, f"shapes[{name!r}]")]
        for name, shape in (given or {}).items()
    }


def _pairs(ties: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    pairs = tuple(names_of(pair, "ties") for pair in items_of(ties, "ties"))
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise Usage(f"ties are pairs of names, not {brief(wrong)}")
    return tuple((kept, gone) for kept, gone in pairs)


def _trained(params: Any, optimizer: Any) -> dict[str, Any]:
    """What is trained, as listed; of a module each parameter that requires a gradient, by all its names, and that the
    optimizer has, if it is one of PyTorch's."""
    held = {id(value) for group in getattr(optimizer, "param_groups", ()) for value in group["params"]}
    if not hasattr(params, "named_parameters"):
        return {"params": names_of(params, "params (or the module itself)")}
    names: dict[int, list[str]] = {}
    for name, value in params.named_parameters(remove_duplicate=False):
        if value.requires_grad and (not held or id(value) in held):
            names.setdefault(id(value), []).append(name)
    if not names:
        raise Usage("no parameter of the module requires a gradient, or the optimizer has none of them")
    return {"params": [name for group in names.values() for name in group], "groups": list(names.values())}
