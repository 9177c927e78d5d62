"""Products: their rows and columns apart, the axis that is summed over in partial sums."""

from __future__ import annotations

from collections.abc import Iterator

from remat_cli.pieces.rows.pointwise import aligned
from remat_cli.pieces.ways import AlongAxis, Call, Row, Total, Way

ROWS_LEAST = 2  # the kernel for a single row is another, with other bits


def matmul(call: Call) -> Iterator[Way]:
    if len(call.read(0)) < 2 or len(call.read(1)) < 2:
        return
    yield from _product(call, call.get("transA", 0), call.get("transB", 0))


def fused_matmul(call: Call) -> Iterator[Way]:
    if not call.get("transBatchA", 0) and not call.get("transBatchB", 0):
        yield from matmul(call)


def _product(call: Call, trans_a: int, trans_b: int) -> Iterator[Way]:
    a, b, out = call.read(0), call.read(1), call.made
    rows, inner_a = (len(a) - 1, len(a) - 2) if trans_a else (len(a) - 2, len(a) - 1)
    inner_b, columns = (len(b) - 1, len(b) - 2) if trans_b else (len(b) - 2, len(b) - 1)
    last = len(out) - 1
    single = ROWS_LEAST if out[last - 1] == 1 else 1  # all rows of `a` are those of one product, where `b` has no more
    for axis in range(last - 1):
        yield Way(f"axis {axis}", (aligned(a, out, axis), aligned(b, out, axis)), (AlongAxis(axis),), least=single)
    yield Way(f"axis {last - 1}", (AlongAxis(rows), None), (AlongAxis(last - 1),), least=ROWS_LEAST)
    yield Way(f"axis {last}", (None, AlongAxis(columns)), (AlongAxis(last),), exact=False)
    yield Way("sum", (AlongAxis(inner_a), AlongAxis(inner_b)), (None,), Total(), exact=False)


def gemm(call: Call) -> Iterator[Way]:
    rows, inner_a = (1, 0) if call.get("transA", 0) else (0, 1)
    inner_b, columns = (1, 0) if call.get("transB", 0) else (0, 1)
    added = call.reads[2] if call.given(2) else None
    more = (None,) * (len(call.reads) - 2)
    by_row = (aligned(added, call.made, 0),) if more else ()
    by_column = (aligned(added, call.made, 1),) if more else ()
    yield Way("axis 0", (AlongAxis(rows), None, *by_row), (AlongAxis(0),), least=ROWS_LEAST)
    yield Way("axis 1", (None, AlongAxis(columns), *by_column), (AlongAxis(1),), exact=False)
    if call.get("alpha", 1.0) == 1.0:
        yield Way("sum", (AlongAxis(inner_a), AlongAxis(inner_b), *more), (None,), Total(through=2), exact=False)


def einsum(call: Call) -> Iterator[Way]:
    """Each letter is an axis of its own; one that the result lacks is summed over."""
    equation = call.get("equation", b"").decode().replace(" ", "")
    reads, arrow, made = equation.partition("->")
    terms = reads.split(",")
    if not arrow or "." in equation or any(len(set(term)) < len(term) for term in (*terms, made)):
        return
    for letter in dict.fromkeys(reads.replace(",", "")):
        inputs = tuple(AlongAxis(term.index(letter)) if letter in term else None for term in terms)
        if letter in made:
            axis = made.index(letter)
            yield Way(f"axis {axis}", inputs, (AlongAxis(axis),), exact=False)
        else:
            yield Way(f"sum {letter}", inputs, (None,), Total(), exact=False)


ROWS: dict[tuple[str, str], Row] = {
    ("", "MatMul"): matmul,
    ("", "Gemm"): gemm,
    ("", "Einsum"): einsum,
    ("com.microsoft", "FusedMatMul"): fused_matmul,
}
