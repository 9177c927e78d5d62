"""Gradients of matrix products.

Invariant: a matrix shared by a batch gets its gradient from one product over the whole batch, never from a batch of
products that are added up.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor


def _matmul(op: Taped, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = op.input(0), op.input(1)
    left = a.reshape(1, *a.shape) if a.rank == 1 else a
    right = b.reshape(*b.shape, 1) if b.rank == 1 else b
    batch = dy.shape[: dy.rank - (a.rank > 1) - (b.rank > 1)]
    dy = dy.reshape(*batch, left.shape[-2], right.shape[-1])
    return (
        _by_left(left, right, dy).reshape(*a.shape) if op.needs[0] else None,
        _by_right(left, right, dy).reshape(*b.shape) if op.needs[1] else None,
    )


def _by_left(a: Tensor, b: Tensor, dy: Tensor) -> Tensor:
    if b.rank == 2 and dy.rank > 2 and a.size != dy.size // b.shape[1] * b.shape[0]:
        dy = dy.sum_to((*a.shape[:-1], b.shape[1]))
    return (dy @ b.transposed).sum_to(a.shape)


def _by_right(a: Tensor, b: Tensor, dy: Tensor) -> Tensor:
    shared = b.size == b.shape[-1] * b.shape[-2]
    if shared and a.shape[:-2] == dy.shape[:-2] and a.rank > 2:
        rows, columns = a.reshape(-1, a.shape[-1]), dy.reshape(-1, dy.shape[-1])
        return a.tape.op("Gemm", rows, columns, transA=1).reshape(*b.shape)
    return (a.transposed @ dy).sum_to(b.shape)


def _gemm(op: Taped, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Y = alpha A' B' + beta C"""
    a, b = op.input(0), op.input(1)
    alpha, beta = op.get("alpha", 1.0), op.get("beta", 1.0)
    turn_a, turn_b = op.get("transA", 0), op.get("transB", 0)

    def gemm(one: Tensor, other: Tensor, turn_one: int, turn_other: int) -> Tensor:
        options = {"transA": turn_one or None, "transB": turn_other or None, "alpha": alpha if alpha != 1 else None}
        return op.tape.op("Gemm", one, other, **options)

    by_a = by_b = by_c = None
    if op.needs[0]:
        by_a = gemm(b, dy, turn_b, 1) if turn_a else gemm(dy, b, 0, 1 - turn_b)
    if op.needs[1]:
        by_b = gemm(dy, a, 1, turn_a) if turn_b else gemm(a, dy, 1 - turn_a, 0)
    if len(op.needs) > 2 and op.needs[2]:
        by_c = dy.sum_to(op.input(2).shape) * beta
    return by_a, by_b, by_c


def _einsum(op: Taped, dy: Tensor) -> list[Tensor | None]:
    """For each operand, the Einsum of the others with the output's gradient."""
    terms, result = _subscripts(op)
    found: list[Tensor | None] = []
    for index, term in enumerate(terms):
        if not op.needs[index]:
            found.append(None)
            continue
        others = [op.input(i) for i in range(len(terms)) if i != index]
        equation = [t for i, t in enumerate(terms) if i != index]
        known = set(result).union(*equation)
        once = "".join(dict.fromkeys(term))
        partial = "".join(letter for letter in once if letter in known)
        product = op.tape.op("Einsum", dy, *others, equation=f"{','.join([result, *equation])}->{partial}")
        sizes = dict(zip(term, op.input(index).shape))
        kept = [sizes[letter] if letter in known else 1 for letter in once]
        found.append(_on_diagonals(product.reshape(*kept).expand(*(sizes[letter] for letter in once)), term))
    return found


def _on_diagonals(tensor: Tensor, term: str) -> Tensor:
    """The tensor, with one axis for each letter, spread to one axis for each time that the letter occurs, with zeros
    off the diagonal."""
    sizes = dict(zip(dict.fromkeys(term), tensor.shape))
    first = {letter: term.index(letter) for letter in sizes}
    spread = tensor.reshape(*(sizes[c] if first[c] == place else 1 for place, c in enumerate(term)))
    for place, letter in enumerate(term):
        if place != first[letter]:
            shape = [sizes[letter] if at in (place, first[letter]) else 1 for at in range(len(term))]
            spread = spread * tensor.tape.constant(np.eye(sizes[letter]).reshape(shape), tensor.dtype)
    return spread


def _subscripts(op: Taped) -> tuple[list[str], str]:
    """The equation with explicit output and letters for the ellipsis."""
    equation = op.get("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    spare = [letter for letter in string.ascii_letters if letter not in equation]
    extra = [op.input(i).rank - len(term.replace("...", "")) for i, term in enumerate(terms)]
    widest = max([size for size, term in zip(extra, terms) if "..." in term], default=0)
    letters = "".join(spare[:widest])
    if not arrow:
        once = sorted(letter for letter in set(left) if letter.isalpha() and left.count(letter) == 1)
        result = ("..." if "..." in left else "") + "".join(once)
    explicit = [term.replace("...", letters[widest - size :]) for term, size in zip(terms, extra)]
    result = result.replace("...", letters)
    for term, x in zip(explicit, op.inputs):
        sizes = dict(zip(term, x.shape if x else ()))
        if any(sizes[letter] == 1 != op.y.shape[result.index(letter)] for letter in term if letter in result):
            raise op.refuse(f"the equation '{equation}' broadcasts")
    return explicit, result


RULES: dict[str, Any] = {"MatMul": _matmul, "Gemm": _gemm, "Einsum": _einsum}
