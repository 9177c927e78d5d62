"""Ops that move elements about: the axes that survive, each with its place before and after."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from remat_cli.pieces.rows.pointwise import aligned
from remat_cli.pieces.ways import AlongAxis, Call, Row, Shape, Way


def transpose(call: Call) -> Iterator[Way]:
    perm = call.get("perm") or list(range(len(call.made)))[::-1]
    for made, axis in enumerate(perm):
        yield Way(f"axis {made}", (AlongAxis(axis),), (AlongAxis(made),), carries=True)


def reshape(call: Call) -> Iterator[Way]:
    """An axis survives where as much lies before it as after, and cuts of the one can be cuts of the other."""
    rest = call.same(None)[1:]
    for axis, made in surviving(call.read(0), call.made):
        yield Way(f"axis {made}", (AlongAxis(axis), *rest), (AlongAxis(made),), carries=True)


def surviving(before: Shape, after: Shape) -> Iterator[tuple[int, int]]:
    """(axis before, axis after) with the same number of elements before them, one a multiple of the other."""
    for axis, size in enumerate(before):
        for made, other in enumerate(after):
            fits = size % other == 0 or other % size == 0 if size > 1 and other > 1 else False
            if fits and prod(before[:axis]) == prod(after[:made]):
                yield axis, made


def expand(call: Call) -> Iterator[Way]:
    for axis, size in enumerate(call.made):
        if size > 1:
            yield Way(f"axis {axis}", (aligned(call.read(0), call.made, axis), None), (AlongAxis(axis),))


def filled(call: Call) -> Iterator[Way]:
    for axis, size in enumerate(call.made):
        if size > 1:
            yield Way(f"axis {axis}", (None,), (AlongAxis(axis),))


def concat(call: Call) -> Iterator[Way]:
    own = call.get("axis", 0) % len(call.made)
    for axis in range(len(call.made)):
        if axis != own:
            yield Way(f"axis {axis}", call.same(axis, *range(len(call.reads))), call.results(axis))


def split(call: Call) -> Iterator[Way]:
    own = call.get("axis", 0) % len(call.read(0))
    for axis in range(len(call.read(0))):
        if axis != own:
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis))


def untouched(call: Call) -> Iterator[Way]:
    """Slice, Pad, Tile: the axes of which nothing is taken and to which nothing is added."""
    if len(call.read(0)) != len(call.made) or any(
        call.given(place) and place not in call.constants for place in _steers(call)
    ):
        return
    for axis in range(len(call.made)):
        if call.read(0)[axis] == call.made[axis] and axis not in _changed(call):
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis))


def _steers(call: Call) -> tuple[int, ...]:
    return {"Slice": (1, 2, 3, 4), "Pad": (1, 3), "Tile": (1,)}[call.op.op_type]


def _changed(call: Call) -> set[int]:
    """Axes whose elements may be others although there are as many."""
    rank, constants = len(call.made), call.constants
    if call.op.op_type == "Slice":
        axes = constants[3].tolist() if 3 in constants else range(len(constants[1]))
        steps = constants[4].tolist() if 4 in constants else [1] * len(constants[1])
        return {axis % rank for axis, step in zip(axes, steps) if step != 1}
    if call.op.op_type == "Pad":
        axes = [axis % rank for axis in (constants[3].tolist() if 3 in constants else range(rank))]
        pads = constants[1].tolist()
        return {axis for place, axis in enumerate(axes) if pads[place] or pads[place + len(axes)]}
    return set()


def gather(call: Call) -> Iterator[Way]:
    """The axes of the data but one, and in its place those of the indices."""
    data, index = call.read(0), call.read(1)
    own = call.get("axis", 0) % len(data)
    for axis in range(len(data)):
        if axis != own:
            made = axis if axis < own else axis + len(index) - 1
            yield Way(f"axis {made}", (AlongAxis(axis), None), (AlongAxis(made),))
    for axis in range(len(index)):
        yield Way(f"axis {own + axis}", (None, AlongAxis(axis)), (AlongAxis(own + axis),))


def elements(call: Call) -> Iterator[Way]:
    """GatherElements, ScatterElements: along other axes than their own, if indices go all along them.

    Along their own, of one axis, where the indices are local.
    """
    own = call.get("axis", 0) % len(call.read(0))
    data, index = call.read(0), call.read(1)
    everything = range(len(call.reads))
    for axis in range(len(data)):
        if axis != own and data[axis] == index[axis]:
            yield Way(f"axis {axis}", call.same(axis, *everything), call.results(axis))
    if len(data) == 1:
        inputs = (AlongAxis(0), AlongAxis(0, local=True), *call.same(0, 2)[2:])
        yield Way("axis 0", inputs, call.results(0))


def squeeze(call: Call) -> Iterator[Way]:
    """Where no axes are named, a piece of one place would lose its axis too."""
    rest, least = call.same(None)[1:], 1 if call.given(1) else 2
    for axis, made in surviving(call.read(0), call.made):
        if call.read(0)[axis] == call.made[made]:
            yield Way(f"axis {made}", (AlongAxis(axis), *rest), (AlongAxis(made),), least=least, carries=True)


def flatten(call: Call) -> Iterator[Way]:
    """The first axis stays the first."""
    if call.get("axis", 1) and call.read(0) and call.read(0)[0] > 1:
        yield Way("axis 0", (AlongAxis(0),), (AlongAxis(0),), carries=True)


def blocks(call: Call) -> Iterator[Way]:
    """DepthToSpace and SpaceToDepth: images, and rows of blocks."""
    for axis in (0, 2, 3):
        yield Way(f"axis {axis}", (AlongAxis(axis),), (AlongAxis(axis),))


def resize(call: Call) -> Iterator[Way]:
    """Images and channels; places where each is repeated so many times, whatever lies beside it."""
    if call.get("axes") or call.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return
    if call.get("coordinate_transformation_mode", b"half_pixel") == b"tf_crop_and_resize":
        return
    for axis, (size, made) in enumerate(zip(call.read(0), call.made)):
        if size == made or (_repeats(call) and made % size == 0 and _whole(call, axis)):
            exact = call.get("mode", b"nearest") == b"nearest"
            yield Way(f"axis {axis}", call.same(axis, 0), call.results(axis), exact=exact)


def _repeats(call: Call) -> bool:
    """Whether an enlarged axis has each place so many times, the same at the ends as within."""
    nearest = call.get("nearest_mode", b"round_prefer_floor")
    modes = call.get("mode", b"nearest"), call.get("coordinate_transformation_mode", b"half_pixel")
    if modes == (b"nearest", b"asymmetric"):
        return bool(nearest == b"floor")
    return modes == (b"nearest", b"half_pixel") and nearest in (b"round_prefer_floor", b"round_prefer_ceil")


def _whole(call: Call, axis: int) -> bool:
    """Whether the scale is what the sizes say."""
    if call.given(3):
        return True
    scales = call.constants.get(2)
    return scales is not None and float(scales[axis]) == call.made[axis] / call.read(0)[axis]


ROWS: dict[tuple[str, str], Row] = {
    ("", "Concat"): concat,
    ("", "ConstantOfShape"): filled,
    ("", "DepthToSpace"): blocks,
    ("", "Expand"): expand,
    ("", "Flatten"): flatten,
    ("", "Gather"): gather,
    ("", "GatherElements"): elements,
    ("", "Pad"): untouched,
    ("", "Reshape"): reshape,
    ("", "Resize"): resize,
    ("", "ScatterElements"): elements,
    ("", "Slice"): untouched,
    ("", "SpaceToDepth"): blocks,
    ("", "Split"): split,
    ("", "Squeeze"): squeeze,
    ("", "Tile"): untouched,
    ("", "Transpose"): transpose,
    ("", "Unsqueeze"): squeeze,
}
