"""Convolutions and pooling: images apart, places of an image with what their windows reach beyond them."""

from __future__ import annotations

from collections.abc import Iterator

from remat_cli.model.windows import explicit_pads
from remat_cli.pieces.ways import AlongAxis, Call, Row, Shape, Slide, Way

CHANNELS = 1


def conv(call: Call) -> Iterator[Way]:
    summand = (3,) if len(call.reads) > 3 else ()  # of a fused one
    yield Way("axis 0", call.same(0, 0, *summand), call.results(0))
    if call.get("group", 1) == 1:
        inputs = (None, AlongAxis(0), *call.same(0, 2)[2:3], *call.same(CHANNELS, *summand)[3:])
        yield Way("axis 1", inputs, call.results(CHANNELS), exact=False)
    for axis, slide in _slides(call, call.read(1)[2:]):
        yield Way(f"axis {axis}", call.same(axis, 0, *summand), call.results(axis), slide=slide)


def conv_transpose(call: Call) -> Iterator[Way]:
    yield Way("axis 0", call.same(0, 0), call.results(0))
    if call.get("group", 1) == 1:
        yield Way("axis 1", (None, AlongAxis(1), *call.same(0, 2)[2:]), call.results(CHANNELS), exact=False)
    if not call.get("output_shape"):
        for axis, slide in _slides(call, call.read(1)[2:], transposed=True):
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis), slide=slide)


def pool(call: Call) -> Iterator[Way]:
    """Indices, if asked for, count from the beginning of the piece: along images and channels they are local."""
    indexed = len(call.makes) > 1 and call.makes[1] is not None
    for axis in (0, CHANNELS):
        outputs = (AlongAxis(axis), AlongAxis(axis, local=True)) if indexed else call.results(axis)
        yield Way(f"axis {axis}", call.same(axis, 0), outputs)
    if not indexed and not call.get("ceil_mode", 0):
        for axis, slide in _slides(call, tuple(call.get("kernel_shape"))):
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis), slide=slide)


def unpool(call: Call) -> Iterator[Way]:
    if call.given(2):
        return
    for axis in (0, CHANNELS):
        yield Way(f"axis {axis}", (AlongAxis(axis), AlongAxis(axis, local=True)), call.results(axis))


def global_pool(call: Call) -> Iterator[Way]:
    for axis in (0, CHANNELS):
        yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis))


def _slides(call: Call, kernel: Shape, transposed: bool = False) -> Iterator[tuple[int, Slide]]:
    """The window along each axis of places, its padding made explicit."""
    sizes, made = call.read(0)[2:], call.made[2:]
    rank = len(sizes)
    strides, dilations = call.get("strides") or [1] * rank, call.get("dilations") or [1] * rank
    auto = call.get("auto_pad", b"").decode()
    if transposed and auto.startswith("SAME"):
        return
    pads = explicit_pads(auto, call.get("pads"), sizes, kernel, strides, dilations)
    for place in range(rank):
        if made[place] > 1:
            own = kernel[place], strides[place], dilations[place], pads[place], sizes[place]
            yield 2 + place, Slide(*own, pads, transposed)


ROWS: dict[tuple[str, str], Row] = {
    ("", "Conv"): conv,
    ("com.microsoft", "FusedConv"): conv,
    ("", "ConvTranspose"): conv_transpose,
    ("", "AveragePool"): pool,
    ("", "LpPool"): pool,
    ("", "MaxPool"): pool,
    ("", "MaxUnpool"): unpool,
    ("", "GlobalAveragePool"): global_pool,
    ("", "GlobalMaxPool"): global_pool,
}
