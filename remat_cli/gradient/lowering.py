"""Rewrites forward ops that have no rule of their own into others before they are differentiated.

Invariant: a lowering either returns the op's outputs, having noted a step for them, or None and leaves the op as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remat_cli.errors import BadInput
from remat_cli.gradient import drawing, recurrent
from remat_cli.gradient.exported import is_detached, smoothing_of
from remat_cli.gradient.logarithms import log
from remat_cli.gradient.losses import IGNORED, cross_entropy, negative_log_likelihood
from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.tracing import TracerLike

Outputs = Sequence["Tensor | None"]


def _identity(tracer: TracerLike, step: Taped, active: bool) -> Outputs:
    """The input itself; where the module detached it, a value without a gradient."""
    if active and step.node is not None and is_detached(step.node):
        return [step.tape.op("Identity", step.x)]
    return [step.x]


def _matrix_vector(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    """A product with a vector on the right as one with a matrix of one column. Where the other operand is a Transpose,
    onnxruntime's optimizer would fuse both and get other numbers."""
    x, vector = step.x, step.input(1)
    if vector.rank != 1 or x.rank < 2:
        return None
    with step.tape.recording():
        return [(x @ vector.reshape(vector.size, 1)).reshape(*x.shape[:-1])]


def _cast_like(tracer: TracerLike, step: Taped, active: bool) -> Outputs:
    """A Cast, because every type is known. Few runtimes have a kernel for CastLike, and the gradient is a Cast back."""
    with step.tape.recording():
        return [step.x.cast(step.input(1).dtype)]


def _batch_norm(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    """In training mode simpler ops, because CUDA's kernel refuses the op; the last of them is the op in inference
    mode."""
    if not step.get("training_mode", 0):
        if active and not tracer.freeze_bn:
            raise BadInput(
                f"BatchNormalization node '{step.name}' is in inference mode, so its statistics would stay fixed; "
                "export the model in training mode, or pass --freeze-bn if that is meant"
            )
        return None
    x, scale, bias, mean, variance = (step.input(i) for i in range(5))
    if x.rank < 2 or not x.size:
        raise step.refuse("its input has no channels, or nothing in them")
    others = [0, *range(2, x.rank)]
    batch_mean = x.mean(others)
    centered = x - batch_mean
    batch_variance = centered.reduce("ReduceSumSquare", others, keep=False) * (x.shape[1] / x.size)
    epsilon = step.get("epsilon", 1e-5)
    step.tape.check_size(f"BatchNormalization node '{step.name}'", x.shape[1])
    zeros = step.tape.constant([0.0] * x.shape[1], x.dtype)
    y = step.tape.op("BatchNormalization", centered, scale, bias, zeros, batch_variance, epsilon=epsilon)
    count = x.size // x.shape[1]
    spread = count / (count - 1) if tracer.sample_variance and count > 1 else 1
    new = [batch_mean.reshape(x.shape[1]), batch_variance * spread]
    momentum = step.get("momentum", 0.9)
    kept = [old * momentum + now.cast(old.dtype) * (1 - momentum) for old, now in zip((mean, variance), new)]
    saved = {"centered": centered, "variance": batch_variance}
    step.tape.step("BatchNormalization in training", step.inputs, [y, *kept], step.attributes, **saved)
    # otherwise they are this batch's statistics, which nobody reads
    if {mean.name, variance.name} <= step.tape.constants.keys():
        tracer.statistics.update(zip((mean.name, variance.name), kept))
    return [y, *kept]


def _cross_entropy(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    """Simpler ops, because the kernels of the op, where they exist, hold as much memory as one-hot labels; these do
    not."""
    if not active:
        return None
    if smoothing := step.node is not None and smoothing_of(step.node):
        raise step.refuse(f"PyTorch's exporter dropped its label_smoothing={smoothing:g}; {_written_out(step)}")
    labels, weights, ignored = step.input(1), step.optional(2), step.get("ignore_index")
    return cross_entropy(step.x, labels, axis=1, weights=weights, ignored=ignored, reduction=_reduction(step))


def _written_out(step: Taped) -> str:
    """What a module can compute instead of a cross-entropy with label smoothing."""
    ignored, reduction = step.get("ignore_index"), _reduction(step)
    if step.optional(2) is not None or reduction != "mean":
        return "write the smoothing out in the module, from log_softmax(x, 1)"
    if ignored in (None, IGNORED):
        formula = "(1 - e) * cross_entropy(x, labels) - e * log_softmax(x, 1).mean()"
        return f"in the module, with e for that, {formula} is the same, where no label is {IGNORED}"
    formula = f"(1 - e) * cross_entropy(x, labels, ignore_index={ignored})"
    formula += " - e * (log_softmax(x, 1).mean(1) * n).sum() / n.sum()"
    return f"in the module, with e for that and n = (labels != {ignored}).float(), {formula} is the same"


def _likelihood(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    if not active:
        return None
    labels, weights, ignored = step.input(1), step.optional(2), step.get("ignore_index")
    return [negative_log_likelihood(step.x, labels, weights, ignored, _reduction(step))]


def _reduction(step: Taped) -> str:
    given = step.get("reduction", b"mean")
    return given.decode() if isinstance(given, bytes) else given


def _group_norm(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    """InstanceNormalization with groups as channels, because few providers have a kernel for the op."""
    if not active:
        return None
    x, scale, bias = (step.input(i) for i in range(3))
    groups, channels = step.get("num_groups"), x.shape[1]
    wide = (channels, *[1] * (x.rank - 2))
    ones, zeros = (step.tape.constant([number] * groups, x.dtype) for number in (1.0, 0.0))

    def per_channel(tensor: Tensor) -> Tensor:
        if tensor.shape[0] != channels:  # opset 18 has one number for each group
            tensor = tensor.reshape(groups, 1).expand(groups, channels // groups)
        return tensor.reshape(*wide)

    with step.tape.recording():
        grouped = x.reshape(x.shape[0], groups, -1)
        normal = step.tape.op("InstanceNormalization", grouped, ones, zeros, epsilon=step.get("epsilon", 1e-5))
        return [normal.reshape(*x.shape) * per_channel(scale) + per_channel(bias)]


LOWERED: dict[str, Callable[[TracerLike, Taped, bool], Outputs | None]] = {
    "Identity": _identity,
    "CastLike": _cast_like,
    "Bernoulli": drawing.bernoulli,
    "Dropout": drawing.dropout,
    "MatMul": _matrix_vector,
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "Log": log,
    "LSTM": recurrent.lstm,
    "GRU": recurrent.gru,
    "RNN": recurrent.rnn,
    "NegativeLogLikelihoodLoss": _likelihood,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
