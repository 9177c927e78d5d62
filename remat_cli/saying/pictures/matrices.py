"""Checkmate's R and S of a plan (its Figure 2): what each stage computes, and what is in memory when it begins.

Stage t ends with the first compute of the t-th op, in the order of first computes; rows are stages, columns ops.

Invariant: R has one on its diagonal; where S has one, R had one above it or S had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remat_cli.saying.pictures import canvas
from remat_cli.saying.showing import Shown
from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Problem

# the most rows that are drawn; with more rows, several share one, and rare entries stay visible
COARSE_ROWS, FINE_ROWS = 260, 1200
NOTHING, COMPUTED, AGAIN, HELD = range(4)
COLORS = ("#ffffff", canvas.PHASES["forward"], canvas.PHASES["recomputed"], "#8792ad")


@dataclass(frozen=True, slots=True)
class Matrices:
    """`nodes`: the op of each column."""

    nodes: tuple[int, ...]
    computed: NDArray[np.bool_]  # R
    held: NDArray[np.bool_]  # S


def matrices(problem: Problem, plan: Plan) -> Matrices:
    """R and S of a legal plan; an op is held while any value that it wrote is held.

    The computes after the last first compute are a stage of their own.
    """
    order = plan.order()
    column = {node: place for place, node in enumerate(dict.fromkeys(order))}
    stages, known = list[int](), set[int]()
    for node in order:
        stages.append(len(known))
        known.add(node)
    stages.append(stages[-1] + 1)
    computed, held = np.zeros((stages[-1], len(column)), bool), np.zeros((stages[-1], len(column)), bool)
    computed[stages[:-1], [column[node] for node in order]] = True
    for node, start, end in _lives(plan, problem.writers(), len(order)):
        held[stages[start] + 1 : stages[end - 1] + 1, column[node]] = True
    return Matrices(tuple(column), computed, held)


def _lives(plan: Plan, writer: list[int], last: int) -> Iterator[tuple[int, int, int]]:
    """Each copy of a value: the op that wrote it, the compute that made it, and the first compute before which it is
    gone."""
    since: dict[int, tuple[int, int]] = {}
    step = 0
    for statement in plan.statements:
        match statement:
            case Allocate(value, register):
                since[register] = writer[value], step
            case Compute():
                step += 1
            case Deallocate(register):
                yield (*since.pop(register), step)
    yield from ((node, start, last) for node, start in since.values())


def draw_matrices(path: Path, found: Shown) -> None:
    problem = found.subject.problem
    both = matrices(problem, found.plan)
    again = both.computed.copy()
    np.fill_diagonal(again, False)
    computed = np.where(again, AGAIN, np.where(both.computed, COMPUTED, NOTHING))
    with canvas.drawing(path, 11, 5.9) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _draw(left, computed, COARSE_ROWS, "R: what each stage computes")
        _draw(right, np.where(both.held, HELD, NOTHING), FINE_ROWS, "S: what is in memory as it begins")
        left.set_ylabel("stage: ends with the first compute of its op")
        early = [place for place, node in enumerate(both.nodes) if not problem.nodes[node].backward]
        turn = early[-1] + 0.5 if early and early[-1] + 1 < len(both.nodes) else None
        for axes in (left, right):
            axes.set_xlabel("op, in the order of first computes")
            if turn is not None:
                axes.axvline(turn, color=canvas.QUIET, linewidth=0.8, linestyle=":")
                axes.axhline(turn, color=canvas.QUIET, linewidth=0.8, linestyle=":")
        _legend(figure, turn is not None)
        figure.suptitle(_words(found), x=0.01, ha="left", fontsize=13, fontweight="bold")


def _draw(axes: Any, matrix: NDArray[Any], most: int, words: str) -> None:
    from matplotlib.colors import ListedColormap

    (rows, columns), share = matrix.shape, -(-len(matrix) // most)
    if share > 1:  # a cell that stands for several entries shows the rarest of them
        matrix = np.pad(matrix, [(0, -size % share) for size in matrix.shape])
        matrix = matrix.reshape(len(matrix) // share, share, -1, share).max((1, 3))
    edges = (-0.5, share * matrix.shape[1] - 0.5, share * len(matrix) - 0.5, -0.5)
    axes.imshow(matrix, ListedColormap(COLORS), vmin=0, vmax=len(COLORS) - 1, interpolation="nearest", extent=edges)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_title(words, loc="left", fontsize=10, color=canvas.QUIET)


def _legend(figure: Any, phases: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = {COMPUTED: "first compute", AGAIN: "computed again", HELD: "in memory"}
    parts: list[Any] = [Patch(color=COLORS[kind], label=name) for kind, name in names.items()]
    if phases:
        parts.append(Line2D([], [], color=canvas.QUIET, linestyle=":", label="the loss is known"))
    figure.legend(handles=parts, loc="outside lower center", ncols=len(parts), fontsize=9)


def _words(found: Shown) -> str:
    name = canvas.short(found.subject.path.name, 60)
    return f"{name}: {found.recorded.method if found.recorded else 'as it stands'}, {found.overhead:+.1%} time"
