"""Sizes that change: a plan is made for the sizes of compilation, and checked for the sizes of each run.

Invariant: the memory at other sizes is predicted by `simulate`, as at the plan's own; a run is never refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from remat_cli.errors import RematWarning
from remat_cli.torch.partition import PlannedJoint
from remat_cli.units import show_bytes
from solvers.schedule import evaluate

Place = tuple[int, int | None]  # an argument, with its dimension, or None for its value


class SizeCheck:
    """Call it with the arguments of each run: it warns where the plan holds more than the budget at their sizes."""

    def __init__(self, forward: fx.Graph, planned: PlannedJoint) -> None:
        self.planned = planned
        self.symbols: dict[Any, Place] = {}
        for symbol, place in _symbols(forward):
            self.symbols.setdefault(symbol, place)
        self.judged: set[tuple[int, ...]] = set()

    def __call__(self, arguments: Sequence[Any]) -> None:
        planned = self.planned
        if not self.symbols or planned.lowered is None or planned.found is None or not planned.found.fits:
            return
        sizes = tuple(_read(arguments, place) for place in self.symbols.values())
        if sizes in self.judged:
            return
        self.judged.add(sizes)
        peak, budget = self.peak(dict(zip(self.symbols, sizes, strict=True))), planned.found.budget
        if peak is not None and peak > budget:
            text = f"remat: with inputs of these sizes a graph holds {show_bytes(peak)}, more than {show_bytes(budget)}"
            text += "; its plan was made for smaller ones. Compile with the largest first, or with dynamic=False"
            warnings.warn(text, RematWarning, stacklevel=4)

    def peak(self, known: dict[Any, int]) -> int | None:
        """The plan's peak at these sizes; None where a size does not follow from them."""
        lowered, found = self.planned.lowered, self.planned.found
        assert lowered is not None
        assert found is not None
        sizes = [_at(size, known) for size in lowered.sizes]
        inputs = [_at(buffer.size, known) for buffer in lowered.joint.resident]
        whole = [size for size in sizes if size is not None]
        given = [size for size in inputs if size is not None]
        if len(whole) < len(sizes) or len(given) < len(inputs):
            return None
        problem = replace(lowered.problem, sizes=tuple(whole), resident=sum(given))
        return evaluate(problem, found.order)[1].peak


def _symbols(graph: fx.Graph) -> Iterator[tuple[Any, Place]]:
    """The symbols that the inputs of a graph define, and the place of each."""
    for place, node in enumerate(graph.find_nodes(op="placeholder")):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
            yield value.node.expr, (place, None)
        elif isinstance(value, torch.Tensor):
            for dimension, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    yield size.node.expr, (place, dimension)


def _read(arguments: Sequence[Any], place: Place) -> int:
    argument, dimension = place
    return int(arguments[argument] if dimension is None else arguments[argument].shape[dimension])


def _at(size: Any, known: dict[Any, int]) -> int | None:
    if isinstance(size, int):
        return size
    found = size.node.expr.xreplace(known)
    return int(found) if found.is_number else None
