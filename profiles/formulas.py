"""How many FLOPs an op does, by kind: a function of its signature each.

Invariant: one FLOP is one addition, subtraction, multiplication, division, maximum, comparison, square root or call of
a transcendental function, on one element; a multiply-add is two. Moving and choosing elements are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from profiles.signature import Operand, OpSignature

Count = Callable[[OpSignature], int]


def count_each(times: int) -> Count:
    """So many for each element of the first output."""
    return lambda signature: times * first_result(signature).count


def count_each_in(times: int, place: int = 0) -> Count:
    """So many for each element of an input."""
    return lambda signature: times * operand_at(signature, place).count


def count_none(signature: OpSignature) -> int:
    return 0


def operand_at(signature: OpSignature, place: int) -> Operand:
    tensor = signature.inputs[place]
    assert tensor is not None, f"{signature} lacks input {place}"
    return tensor


def first_result(signature: OpSignature) -> Operand:
    return signature.made[0]


def has_operand(signature: OpSignature, place: int) -> bool:
    return place < len(signature.inputs) and signature.inputs[place] is not None


def count_variadic(signature: OpSignature) -> int:
    return max(0, len(signature.given) - 1) * first_result(signature).count


def count_mean(signature: OpSignature) -> int:
    return count_variadic(signature) + first_result(signature).count


def count_conv(signature: OpSignature) -> int:
    """2 * outputs * (C / groups) * kernel, and the bias."""
    weight = operand_at(signature, 1).shape
    outputs = first_result(signature).count
    return 2 * outputs * math.prod(weight[1:]) + (outputs if has_operand(signature, 2) else 0)


def count_conv_transpose(signature: OpSignature) -> int:
    """Every input element meets (M / groups) * kernel weights; then the bias."""
    weight = operand_at(signature, 1).shape
    bias = first_result(signature).count if has_operand(signature, 2) else 0
    return 2 * operand_at(signature, 0).count * math.prod(weight[1:]) + bias


def count_conv_grad(met: int) -> Count:
    """Inputs dY, X, W: a convolution for each of dX and dW asked for, in which each element at `met` meets the weights
    that it met forward; and a sum for dB."""

    def count(signature: OpSignature) -> int:
        dy, weight = operand_at(signature, 0), operand_at(signature, 2).shape
        asked = [len(signature.outputs) > place and signature.outputs[place] is not None for place in range(3)]
        products = 2 * operand_at(signature, met).count * math.prod(weight[1:])
        return products * (asked[0] + asked[1]) + (dy.count if asked[2] else 0)

    return count


def count_matmul(signature: OpSignature) -> int:
    """2 * outputs * K, scaled if alpha is not 1."""
    a = operand_at(signature, 0).shape
    transposed = bool(signature.options.get("transA", 0))
    depth = a[-2] if transposed and len(a) > 1 else a[-1]
    scaled = float(signature.options.get("alpha", 1.0)) != 1.0
    return 2 * first_result(signature).count * depth + (first_result(signature).count if scaled else 0)


def count_gemm(signature: OpSignature) -> int:
    """A product; alpha and beta cost when they are not 1; C is added."""
    outputs = first_result(signature).count
    with_c = has_operand(signature, 2)
    beta = with_c and float(signature.options.get("beta", 1.0)) != 1.0
    return count_matmul(signature) + (outputs if with_c else 0) + (operand_at(signature, 2).count if beta else 0)


def count_einsum(signature: OpSignature) -> int:
    """One multiply for each operand beyond the first and one add, for every combination of all the indices."""
    equation = signature.options["equation"].decode().replace(" ", "")
    extents: dict[str, int] = {}
    for term, tensor in zip(equation.split("->")[0].split(","), signature.given, strict=True):
        head, _, tail = term.partition("...")
        missing = len(tensor.shape) - len(head) - len(tail)
        letters = [*head, *(f".{missing - place}" for place in range(missing)), *tail]
        for letter, extent in zip(letters, tensor.shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, 1))
    points = math.prod(extents.values())
    summed = points > first_result(signature).count
    return points * (len(signature.given) - 1 + summed)


def count_attention(signature: OpSignature) -> int:
    """Two products over queries x keys x head size, a scale, a mask if any, and a softmax."""
    q, k, v = (operand_at(signature, place).shape for place in range(3))
    if len(q) == 4:
        rows, keys, inner, outer = math.prod(q[:3]), k[2], q[3], v[3]
    else:
        heads = int(signature.options["q_num_heads"])
        key_heads = int(signature.options["kv_num_heads"])
        rows, keys, inner, outer = q[0] * q[1] * heads, k[1], q[2] // heads, v[2] // key_heads
    scores = rows * keys
    return 2 * scores * (inner + outer) + scores * (6 + has_operand(signature, 3))


def count_kernel(signature: OpSignature) -> int:
    extents: list[int] = signature.options.get("kernel_shape", [1])
    return math.prod(extents)


def count_pool(signature: OpSignature) -> int:
    """Kernel - 1 maxima for each output."""
    return first_result(signature).count * (count_kernel(signature) - 1)


def count_average_pool(signature: OpSignature) -> int:
    """Kernel - 1 additions and a division for each output."""
    return first_result(signature).count * count_kernel(signature)


def count_average_pool_grad(signature: OpSignature) -> int:
    """A division for each dY, then kernel additions into dX."""
    return operand_at(signature, 0).count * (1 + count_kernel(signature))


def count_reduced(after: int, before: int = 0) -> Count:
    """One addition fewer than there are elements for each result; and so many per element, so many per result."""

    def count(signature: OpSignature) -> int:
        elements, results = operand_at(signature, 0).count, first_result(signature).count
        return elements - results + before * elements + after * results

    return count


def count_norm(per_element: int, per_row: int) -> Count:
    """Layer and RMS normalization: rows run from `axis` on; scale and bias are counted where given."""

    def count(signature: OpSignature) -> int:
        x = operand_at(signature, 0)
        axis = int(signature.options.get("axis", -1))
        rows = math.prod(x.shape[: axis if axis >= 0 else len(x.shape) + axis])
        return x.count * (per_element + has_operand(signature, 1) + has_operand(signature, 2)) + per_row * rows

    return count


def count_channel_norm(signature: OpSignature) -> int:
    """Instance and group normalization: mean 1, centre 1, square and sum 2, scale 1, then weight and bias 2."""
    x = operand_at(signature, 0)
    groups = int(signature.options.get("num_groups", x.shape[1]))
    return 7 * x.count + 4 * x.shape[0] * groups


def count_batch_norm(signature: OpSignature) -> int:
    """Testing: (x - mean) * (scale / deviation) + bias, 3 per element and 3 per channel. Training adds the moments."""
    x, channels = operand_at(signature, 0), operand_at(signature, 1).count
    if signature.op_type == "BatchNormalization" and not signature.options.get("training_mode", 0):
        return 3 * x.count + 3 * channels
    running = sum(has_operand(signature, place) for place in (3, 4)) * 3 * channels
    return 3 * x.count + 3 * channels + 4 * x.count + 2 * channels + running


def count_batch_norm_grad(signature: OpSignature) -> int:
    """dB: 1; x-hat: 2; dScale: 2; dX = a (N dY - dB - x-hat dScale) / N: 4 per element; 2 per channel."""
    return 9 * operand_at(signature, 0).count + 2 * operand_at(signature, 2).count


def count_layer_norm_grad(signature: OpSignature) -> int:
    """x-hat 2, dBias 1, dScale 2, dY scale 1, two row sums 3, dX 5 per element; 2 per row."""
    dy = operand_at(signature, 0)
    axis = int(signature.options.get("axis", -1))
    return 14 * dy.count + 2 * math.prod(dy.shape[: axis if axis >= 0 else len(dy.shape) + axis])


def count_lrn(signature: OpSignature) -> int:
    """Square, `size` - 1 additions, scale, bias, power, division."""
    return first_result(signature).count * (int(signature.options["size"]) + 4)


def count_softmax(per_row: int) -> Count:
    """Maximum, subtraction, exponential, sum and a division or subtraction: 5 per element, and so many per row.

    The two reductions save 2 per row; a logarithm costs 1.
    """

    def count(signature: OpSignature) -> int:
        x, newer = operand_at(signature, 0), signature.opset >= 13
        axis = int(signature.options.get("axis", -1 if newer else 1))
        length = x.shape[axis] if newer else math.prod(x.shape[axis:])
        return 5 * x.count + per_row * (x.count // max(1, length))

    return count


def count_cross_entropy(signature: OpSignature) -> int:
    """A log-softmax over the classes, a sign and a sum for each label, and a division."""
    scores = operand_at(signature, 0)
    rows = scores.count // scores.shape[1]
    weighted = 2 * rows if has_operand(signature, 2) else 0
    return 5 * scores.count - rows + 2 * rows + weighted


def count_cross_entropy_grad(signature: OpSignature) -> int:
    """exp(log p), minus one at the label, times the loss gradient over the count."""
    scores, labels = operand_at(signature, 1), operand_at(signature, 2)
    return 2 * scores.count + labels.count + 1


def count_resize(signature: OpSignature) -> int:
    """Nearest moves; linear blends 2 neighbours, cubic 4, along each axis that changes."""
    mode = signature.options.get("mode", b"nearest")
    x, y = operand_at(signature, 0).shape, first_result(signature).shape
    axes = sum(a != b for a, b in zip(x, y, strict=True))
    neighbours = {b"linear": 2, b"cubic": 4}.get(mode, 0) ** axes if mode != b"nearest" else 0
    return max(0, 2 * neighbours - 1) * first_result(signature).count


def count_updates(signature: OpSignature) -> int:
    """A scatter adds only if it reduces."""
    reduces = signature.options.get("reduction", b"none") not in (b"none", "none")
    return operand_at(signature, 2).count if reduces else 0


def count_dropout(signature: OpSignature) -> int:
    """Compare and scale where it trains; the identity otherwise."""
    training = signature.inputs[2] if len(signature.inputs) > 2 else None
    value = training.value() if training else None
    trains = training is not None and (value is None or bool(value.reshape(-1)[0]))
    return 2 * first_result(signature).count if trains else 0


def count_recurrent(gates: int, pointwise: int) -> Count:
    """Each step and direction: two products for the gates and so many FLOPs for each hidden unit."""

    def count(signature: OpSignature) -> int:
        steps, batch, inputs = operand_at(signature, 0).shape
        directions = operand_at(signature, 1).shape[0]
        hidden = operand_at(signature, 2).shape[2]
        products = 2 * gates * hidden * (inputs + hidden)
        biases = 2 * gates * hidden if has_operand(signature, 3) else 0
        return steps * batch * directions * (products + biases + pointwise * hidden)

    return count


def count_gelu(signature: OpSignature) -> int:
    """0.5 x (1 + erf(x / sqrt 2)) is 5; the tanh form, 0.5 x (1 + tanh(c (x + a x^3))), is 9."""
    tanh = signature.options.get("approximate", b"none") in (b"tanh", "tanh")
    return (9 if tanh else 5) * first_result(signature).count


def count_clip(signature: OpSignature) -> int:
    return (has_operand(signature, 1) + has_operand(signature, 2)) * first_result(signature).count
