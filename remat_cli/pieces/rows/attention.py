"""Attention, and the rotation before it: examples apart, heads apart, and queries apart where each sees all keys."""

from __future__ import annotations

from collections.abc import Iterator

from remat_cli.pieces.ways import AlongAxis, Call, Row, Way

BATCH, HEADS, QUERIES = 0, 1, 2  # axes where heads are apart
PAST_KEYS = 4  # the place of the input
ROWS_LEAST = 2  # the kernel for a single row is another


def attention(call: Call) -> Iterator[Way]:
    by_head = len(call.read(0)) == 4
    yield _attention(call, BATCH, 0, (0, 1, 2, 4, 5, 6))
    if by_head and not call.get("q_num_heads", 0):
        yield _attention(call, HEADS, 1, (0, 1, 2, 4, 5))
    windows = [call.get(f"{side}_window_size", -1) for side in ("left", "right")]
    sees_all = not call.get("is_causal", 0) and windows == [-1, -1]
    if sees_all and not any(call.makes[1:3]) and not call.given(PAST_KEYS):
        yield _attention(call, QUERIES, QUERIES if by_head else 1, (0,))


def _attention(call: Call, kind: int, axis: int, places: tuple[int, ...]) -> Way:
    inputs = list(call.same(axis, *places))
    if call.given(3):
        inputs[3] = _of_mask(call, kind)
    outputs = (
        *call.results(axis, 0)[:1],
        *(AlongAxis(kind) if shape is not None else None for shape in call.makes[1:]),
    )
    name = ("batch", "heads", "rows")[kind]
    return Way(name, tuple(inputs), outputs, exact=kind != QUERIES, least=ROWS_LEAST if kind == QUERIES else 1)


def _of_mask(call: Call, kind: int) -> AlongAxis | None:
    """The mask has the last axes of the scores, some of them of length 1."""
    mask = call.read(3)
    axis = kind - (4 - len(mask))
    return AlongAxis(axis) if axis >= 0 and mask[axis] != 1 else None


def rotary(call: Call) -> Iterator[Way]:
    """Cosines and sines are of each example and place, or picked from a table by places."""
    by_head, picked = len(call.read(0)) == 4, call.given(3)
    for name, axis, of_tables in (("batch", BATCH, 0), ("rows", QUERIES if by_head else 1, 1)):
        beside = (None, None, AlongAxis(of_tables)) if picked else (AlongAxis(of_tables), AlongAxis(of_tables))
        yield Way(name, (AlongAxis(axis), *beside), call.results(axis))
    if by_head:
        yield Way("heads", call.same(HEADS, 0), call.results(HEADS))


ROWS: dict[tuple[str, str], Row] = {("", "Attention"): attention, ("", "RotaryEmbedding"): rotary}
