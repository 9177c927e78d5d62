"""Rewrites forward ops that have no rule of their own into others before they are differentiated.

Invariant: a lowering either returns the op's outputs, having noted a step for them, or None and leaves the op as it is.
A copy of what is drawn draws what the original does, because each draw has a seed. Where both forms of a logarithm are
finite, they are the same function.

ONNX Runtime's CPU kernels err twice. Its Bernoulli gives 1 with probability 1 - p, as ONNX's own definition of the op
does. Its Dropout begins each mask with consecutive seeds, so that the first elements stay the same for thousands of
steps. So a Bernoulli, and a Dropout of few elements, are written as numbers that are drawn and compared.

PyTorch's `logsigmoid` and `binary_cross_entropy_with_logits` are finite wherever their inputs are. In float32 a Log of
a Sigmoid is infinite for logits far below 0, where it was seen at -60, and a Log of a sum of two Exp above 88.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import onnx
from onnx import helper

from remat_cli.errors import BadInput
from remat_cli.gradient import recurrent
from remat_cli.gradient.exported import is_detached, smoothing_of
from remat_cli.gradient.losses import IGNORED, cross_entropy, likelihood
from remat_cli.gradient.tape import Tape, Taped
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.tracing import TracerLike

FEW_ELEMENTS = 1 << 12  # of a Dropout, so that drawing them apart takes next to no memory
SEEDS = 1 << 24  # seeds of float attributes that are told apart
Outputs = Sequence["Tensor | None"]


def dropout(tracer: TracerLike, step: Taped, active: bool) -> Outputs | None:
    """Without training the identity; in training a mask, or the op with a seed where that has many elements."""
    training = bool(step.array(2, "training_mode")) if step.optional(2) else False
    ratio = float(step.array(1, "ratio")) if step.optional(1) else 0.5
    if not training or ratio == 0:
        return [step.x, _filled(step, True)]
    if not 0 < ratio <= 1:
        raise step.refuse(f"its ratio is {ratio:g}, and shares are between 0 and 1")
    if ratio == 1:
        with step.tape.recording():
            return [step.x * 0.0, _filled(step, False)]
    step.attributes["ratio"] = ratio
    if step.x.size <= FEW_ELEMENTS:
        mask = _drawn(step) > ratio
        y = mask.where(step.x * (1 / (1 - ratio)), 0.0)
        step.tape.step("Dropout", step.inputs, [y, mask], step.attributes)
        return [y, mask]
    if step.get("seed") is None:
        assert step.node is not None
        step.attributes["seed"] = zlib.crc32(step.name.encode()) & 0x7FFFFFFF
        step.node.attribute.append(helper.make_attribute("seed", step.attributes["seed"]))
    return None


def bernoulli(tracer: TracerLike, step: Taped, active: bool) -> Outputs:
    """1 where a number that is drawn is below the share, else 0: no gradient leads to the share, as in PyTorch."""
    given = step.get("dtype", step.x.dtype)
    return [(_drawn(step) < step.x.cast(onnx.TensorProto.FLOAT)).cast(given)]


def _drawn(step: Taped) -> Tensor:
    """Numbers between 0 and 1, one for each element of the step's input."""
    seed = step.get("seed")
    seed = zlib.crc32(step.name.encode()) if seed is None else int(seed)
    return step.tape.op("RandomUniform", shape=list(step.x.shape), seed=float(seed % SEEDS))


def _filled(step: Taped, kept: bool) -> Tensor:
    """The mask of all elements, or of none."""
    value = helper.make_tensor("kept", onnx.TensorProto.BOOL, [1], [kept])
    return step.tape.op("ConstantOfShape", step.tape.integers(step.x.shape), value=value)


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
    return cross_entropy(
        step.x, labels, axis=1, weights=weights, ignored=ignored, reduction=step.get("reduction", "mean")
    )


def _written_out(step: Taped) -> str:
    """What a module can compute instead of a cross-entropy with label smoothing."""
    ignored = step.get("ignore_index")
    if step.optional(2) is not None or step.get("reduction", "mean") != "mean":
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
    with step.tape.recording():
        return [likelihood(step.x, labels, 1, weights, ignored, step.get("reduction", "mean"))[0]]


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
    "Bernoulli": bernoulli,
    "Dropout": dropout,
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
