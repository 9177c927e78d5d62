"""Gradients of convolutions: by the input a transposed convolution, by the weight a product over images and places.

Invariant: every form gives the same numbers up to rounding; which one is emitted depends on shapes alone, by the
measurements in docs/gradients.md.
"""

from __future__ import annotations

from remat_cli.gradient.tape import Step
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.window import Window, window


def _conv(op: Step, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    x, w = op.input(0), op.input(1)
    place = window(op, x.shape[2:], w.shape[2:])
    groups = op.get("group", 1)
    return (
        _by_input(dy, w, place, groups) if op.needs[0] else None,
        _by_weight(x, dy, place, groups) if op.needs[1] else None,
        _by_bias(op, dy),
    )


def _conv_transpose(op: Step, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Its input is what a convolution of dy gives; its weight stands as that convolution's."""
    x, w = op.input(0), op.input(1)
    place = _transposed_window(op, dy, x, w)
    groups = op.get("group", 1)
    by_x = None
    if op.needs[0]:
        by_x = op.tape.op("Conv", dy, w, **_options(place, groups))
    return by_x, _by_weight(dy, x, place, groups) if op.needs[1] else None, _by_bias(op, dy)


def _transposed_window(op: Step, dy: Tensor, x: Tensor, w: Tensor) -> Window:
    """The window of the convolution that leads from the output's size back to the input's."""
    rank = dy.rank - 2
    auto = op.get("auto_pad", b"NOTSET")
    if (auto.decode() if isinstance(auto, bytes) else auto) not in ("NOTSET", "VALID") or op.get("output_shape"):
        raise op.refuse("auto_pad and output_shape are not handled; export it with explicit pads")
    place = window(op, dy.shape[2:], w.shape[2:])
    extra = place.left_over(x.shape[2:])
    given = list(op.get("output_padding") or [0] * rank)
    if extra != given:
        raise op.refuse(f"its output has the size {list(dy.shape[2:])}, which its attributes do not explain")
    # Rows added at the far end see no window when they fit in a stride; otherwise the pad on that side shrinks.
    after = tuple(pad - max(0, more - s + 1) for pad, more, s in zip(place.after, extra, place.strides))
    return Window(place.size, place.kernel, place.strides, place.dilations, place.before, after)


def _by_bias(op: Step, dy: Tensor) -> Tensor | None:
    if len(op.needs) < 3 or not op.needs[2]:
        return None
    return dy.sum([0, *range(2, dy.rank)], keep=False)


def _options(place: Window, groups: int) -> dict[str, object]:
    """Attributes of a Conv, defaults left out."""
    ones = (1,) * len(place.kernel)
    return {
        "kernel_shape": list(place.kernel),
        "strides": list(place.strides) if place.strides != ones else None,
        "dilations": list(place.dilations) if place.dilations != ones else None,
        "pads": place.pads if any(place.pads) else None,
        "group": groups if groups != 1 else None,
    }


def _by_input(dy: Tensor, w: Tensor, place: Window, groups: int) -> Tensor:
    extra = place.left_over(dy.shape[2:])
    options = _options(place, groups)
    return dy.tape.op("ConvTranspose", dy, w, output_padding=extra if any(extra) else None, **options)


def _by_weight(x: Tensor, dy: Tensor, place: Window, groups: int) -> Tensor:
    if place.pointwise and groups == 1:
        return _product(_strided(x, place), dy).reshape(dy.shape[1], x.shape[1], *place.kernel)
    return _by_convolution(x, dy, place, groups)


def _strided(x: Tensor, place: Window) -> Tensor:
    """What a pointwise convolution reads: sliced first, so that nothing larger is made."""
    for axis, stride in enumerate(place.strides):
        if stride != 1:
            x = x.slice(2 + axis, 0, x.shape[2 + axis], stride)
    return x


def _product(x: Tensor, dy: Tensor) -> Tensor:
    """Sum over images and places of dy[k] * x[c]."""
    images, channels, filters = x.shape[0], x.shape[1], dy.shape[1]
    rows, columns = dy.reshape(images, filters, -1), x.reshape(images, channels, -1)
    if images == 1:
        return dy.tape.op("Gemm", rows.reshape(filters, -1), columns.reshape(channels, -1), transB=1)
    return (rows @ columns.transposed).sum([0], keep=False)


def _by_convolution(x: Tensor, dy: Tensor, place: Window, groups: int) -> Tensor:
    """Images as channels, channels as images; dy is the kernel, strides and dilations exchanged."""
    images, channels, rank = x.shape[0], x.shape[1], x.rank
    swapped = [1, 0, *range(2, rank)]
    if groups == 1:
        turned = x.transpose(*swapped)
    else:
        apart = x.reshape(images, groups, channels // groups, *x.shape[2:])
        turned = apart.transpose(2, 1, 0, *range(3, rank + 1))
        turned = turned.reshape(channels // groups, groups * images, *x.shape[2:])
    sliding = Window(place.size, dy.shape[2:], place.dilations, place.strides, place.before, place.after)
    found = x.tape.op("Conv", turned, dy.transpose(*swapped), **_options(sliding, groups))
    for axis, size in enumerate(place.kernel):
        found = found.slice(2 + axis, 0, size)
    return found.transpose(*swapped)


RULES = {"Conv": _conv, "ConvTranspose": _conv_transpose}
