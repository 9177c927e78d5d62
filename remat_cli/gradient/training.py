"""The training graph of a forward model: loss, gradients, and what else goes in and comes out of a step.

Invariant: inputs are data, labels, parameters and state under their own names; outputs are `loss`, `<parameter>_grad`
(or, with an optimizer, `<parameter>_new` and `<state>_new`, or `<parameter>_grad_sum_new`) and the updated statistics,
each named by the node that makes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import onnx

from remat_cli.errors import BadInput
from remat_cli.gradient.assemble import assemble
from remat_cli.gradient.autocast import PRECISIONS
from remat_cli.gradient.classes import CLASS_AXIS, class_axis, named_class_axis
from remat_cli.gradient.differentiate import differentiate
from remat_cli.gradient.losses import in_float32, loss_with_labels
from remat_cli.gradient.optimizers import RATE, STEP, Recipe, Update, Updates
from remat_cli.gradient.parameters import Choice, remarks
from remat_cli.gradient.prepare import Binding, Forward, Modes, check_outputs, prepare
from remat_cli.gradient.rules import RULES
from remat_cli.gradient.scaling import FINITE, FIRST_SCALE, LOSS_SCALE, Scaling
from remat_cli.gradient.tape import FLOATS
from remat_cli.gradient.tensor import Tensor
from remat_cli.model.step_parts import OPTIMIZER, STEP_PARTS, Parts, sum_of
from remat_cli.onnx_graph.stored import array_of

BUILT_IN = ("cross-entropy", "mse")


@dataclass(frozen=True, slots=True)
class Options:
    loss: str | None = None  # one that is built in, or an output's name; None: the first output, if it is a scalar,
    # else cross-entropy
    logits: str | None = None  # the value that a built-in loss is taken of; by default the first output
    outputs: Sequence[str] = ()  # outputs of the model that the step returns too
    class_axis: int | None = None  # the axis that labels choose from; the default is `classes`'
    choice: Choice = field(default_factory=Choice)
    binding: Binding = field(default_factory=Binding)
    recipe: Recipe = field(default_factory=Recipe)  # the recipe of the update
    freeze_bn: bool = False  # BatchNormalization in inference mode is meant
    train: bool = False  # every Dropout and BatchNormalization trains, whatever mode the file has it in
    precision: str = "float32"  # the type in which products are computed
    accumulate: bool = False  # gradients are added to sums that come in


def training_graph(model: onnx.ModelProto, options: Options) -> onnx.ModelProto:
    """One step of training the model: forward, loss, backward and update."""
    choice = options.choice
    target = options.logits if options.loss in BUILT_IN or options.loss is None else options.loss
    narrow = PRECISIONS[options.precision]
    modes = Modes(options.train, options.freeze_bn)
    check_outputs(model, options.outputs)
    forward = prepare(model, (target, *options.outputs), choice, options.binding, modes, narrow)
    options = replace(options, loss=options.loss or _usual(forward.output, options.logits))
    for name in ("loss", "labels", "target", RATE, STEP, LOSS_SCALE, FINITE):
        forward.tape.reserve(name)
    axis = _axis(forward, model, options)
    loss = _loss(forward, options, axis)
    scaling = Scaling(forward.tape) if narrow == onnx.TensorProto.FLOAT16 else None
    gradients: dict[str, Tensor] = {}
    sums: dict[str, Tensor] = {}  # inputs -> what they are with this batch's gradients
    updates = Updates(forward.tape, options.recipe)

    def finished(parameter: Tensor, gradient: Tensor) -> None:
        gradients[parameter.name] = scaling.taken_off(gradient) if scaling else gradient
        if options.accumulate:
            sums[sum_of(parameter.name)] = _added(parameter, gradients[parameter.name])
        elif scaling is None:
            updates.take(parameter, gradients[parameter.name])

    wanted = list(forward.parameters.values())
    differentiate(forward.tape, loss, wanted, RULES, finished, scaling.scale if scaling else None)
    _check_reached(forward, model, gradients, choice.wrt)
    options.recipe.check_names(forward.parameters)
    update, finite = _finish(forward, updates, scaling, gradients)
    outputs = {"loss": loss}
    if options.recipe.name == "none" and not options.accumulate:
        outputs |= {f"{name}_grad": gradients[tensor.name] for name, tensor in forward.parameters.items()}
    outputs |= _renewals(forward, update) | {f"{name}_new": tensor for name, tensor in sums.items()}
    if finite is not None:
        outputs[FINITE] = finite
    outputs |= {name: in_float32(tensor) for name, tensor in forward.others.items() if name not in outputs}
    names = [*forward.inputs, *forward.parameters, *update.inputs, *sums]
    training = assemble(forward.tape, names, outputs, _defaults(forward, model, options.recipe, scaling))
    parts = replace(_parts(forward, model, update, choice), sums=tuple(sums))
    properties = {STEP_PARTS: json.dumps(asdict(parts))}
    onnx.helper.set_model_props(training, properties | _properties(options, axis % max(1, forward.output.rank)))
    return training


def _added(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The sum of a parameter's gradients with this one: at once, so that no gradient is held for long."""
    with parameter.tape.scope(f"{parameter.name}/sum"):
        return parameter.tape.declare(sum_of(parameter.name), parameter.dtype, parameter.shape) + gradient


def _properties(options: Options, class_axis: int) -> dict[str, str]:
    """The file's metadata about its loss and its optimizer."""
    properties = {CLASS_AXIS: str(class_axis)} if options.loss == "cross-entropy" else {}
    if options.recipe.name != "none":
        properties[OPTIMIZER] = json.dumps(options.recipe.described())
    return properties


def _defaults(
    forward: Forward, model: onnx.ModelProto, recipe: Recipe, scaling: Scaling | None
) -> dict[str, np.ndarray]:
    """Default values of inputs: running statistics, the learning rate, the scale of the loss, and parameters of rank 0,
    most of which are an exporter's constants that nobody feeds."""
    defaults = {name: forward.tape.constants[name] for name in forward.updated}
    scalars = (tensor for tensor in model.graph.initializer if not tensor.dims and tensor.name in forward.parameters)
    defaults |= {tensor.name: array_of(tensor) for tensor in scalars}
    if recipe.name != "none":
        defaults[RATE] = np.array(recipe.hyper.rate, np.float32)
    if scaling:
        defaults[LOSS_SCALE] = np.array(FIRST_SCALE, np.float32)
    return defaults


def _renewals(forward: Forward, update: Update) -> dict[str, Tensor]:
    """The values of inputs after the step: parameters, the optimizer's state, running statistics."""
    names = [name for name in (*forward.parameters, *update.inputs) if name in update.outputs]
    renewed = {**{name: update.outputs[name] for name in names}, **forward.updated}
    return {f"{name}_new": tensor for name, tensor in renewed.items()}


def _finish(
    forward: Forward, updates: Updates, scaling: Scaling | None, gradients: dict[str, Tensor]
) -> tuple[Update, Tensor | None]:
    """The update of all parameters, and whether it is made: with float16 not before all gradients are known."""
    finite = scaling.finite() if scaling else None
    for tensor in forward.parameters.values() if finite is not None else ():
        updates.take(tensor, gradients[tensor.name])
    updates.finish()
    if finite is not None:
        _only_if(finite, updates.made, forward)
    return updates.made, finite


def _only_if(finite: Tensor, update: Update, forward: Forward) -> None:
    """Let the update be made only if all gradients are numbers: else what comes out is what went in.

    Said in the graph, so that new values can be written over the old ones.
    """
    before = {tensor.name: tensor for tensor in forward.parameters.values()} | update.inputs
    for name, made in update.outputs.items():
        with forward.tape.scope(f"{name}/update"):
            update.outputs[name] = forward.tape.op("Where", finite, made, before[name])


def _parts(forward: Forward, model: onnx.ModelProto, update: Update, choice: Choice) -> Parts:
    """Which inputs of the step are what, and what the user should know of its parameters."""
    shapes = {name: tensor.shape for name, tensor in forward.parameters.items()}
    reads = {name: forward.reads[tensor.name] for name, tensor in forward.parameters.items()}
    notes = (*forward.notes, *remarks(model, shapes, reads, choice))
    return Parts(reads, tuple(update.inputs), tuple(forward.updated), tuple(forward.inputs), notes)


def _axis(forward: Forward, model: onnx.ModelProto, options: Options) -> int:
    """The class axis by the user's word, by the model's, or by the tensor's rank."""
    if options.class_axis is not None:
        return options.class_axis
    named = named_class_axis(model) if options.logits is None else None
    return class_axis(forward.output, forward.tape.nodes) if named is None else named


def _usual(output: Tensor, logits: str | None) -> str:
    """The loss where nobody names one: a scalar output is the loss, otherwise it is cross-entropy."""
    scalar = output.rank == 0 and output.dtype in FLOATS and logits is None
    return output.name if scalar else "cross-entropy"


def _loss(forward: Forward, options: Options, axis: int) -> Tensor:
    output = forward.output
    if options.loss not in BUILT_IN:
        if output.size != 1 or output.dtype not in FLOATS:
            raise BadInput(f"'{options.loss}' cannot be the loss: its shape is {list(output.shape)}, not a scalar's")
        return in_float32(output)
    with forward.tape.scope("loss"):
        given, loss = loss_with_labels(output, options.loss, axis)
    forward.inputs[given.name] = given
    return loss


def _check_reached(forward: Forward, model: onnx.ModelProto, gradients: dict[str, Tensor], wrt: Sequence[str]) -> None:
    """Check the parameters without a gradient: they are constants or data, unless the user asked to train them."""
    stored = {initializer.name: initializer for initializer in model.graph.initializer}
    for name in [name for name, tensor in forward.parameters.items() if tensor.name not in gradients]:
        if name in wrt:
            raise BadInput(f"--wrt {name}: the loss does not depend on it in a way that has a gradient")
        tensor = forward.parameters.pop(name)
        if name in stored:
            forward.tape.constants[tensor.name] = array_of(stored[name])
        else:
            forward.inputs[name] = tensor
    if not forward.parameters:
        raise BadInput("nothing to train: no float initializer leads to the loss; name parameters with --wrt")
