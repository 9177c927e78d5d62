"""Predicts what a rewritten graph needs with default options: in their order, with buffers that wait to be used again.

Invariant: the figures are of the very nodes that were written; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from remat_cli.model.proved import Promise
from remat_cli.onnx_graph.walk import default_order
from remat_cli.rewrite.predict import Prediction
from solvers.placement.growing import grown
from solvers.placement.lives import Lives
from solvers.placement.pattern import block_of
from solvers.placement.reusing import Buffers, Tenants, tenants_of
from solvers.plan import Allocate, Plan, lower
from solvers.problem import RESIDENT, Problem

Flags = npt.NDArray[np.bool_]

HIDING_ROUNDS = 40  # rounds of hiding the values whose buffers are idle at the peak
# one over this is the share of the peak that a buffer must have to be hidden, step by step
WAITING_PARTS = (16, 128, 1024)


class StockPrediction(Prediction):
    """`hidden`, wherever it is asked for: values whose shapes the session's planner does not see.

    `at_the_peak`: the shapes shown to the planner, the values to hide then, and the peak that is left.
    """

    at_the_peak: tuple[set[str], set[int], int] | None = None

    @cached_property
    def default(self) -> Plan:
        """The plan in the order of default sessions."""
        return lower(self.problem, default_order(self.reads))

    @cached_property
    def shown(self) -> set[str]:
        return {self.names[value] for value in _find_written_over(self.problem, self.strict)}

    def promise(self, hidden: Collection[str] = ()) -> Promise:
        """The peak in each session type, and the time."""
        return replace(self.strict_promise(), default=self.problem.resident + self._buffers(hidden).peak()[0])

    def default_lifetimes(self, hidden: Collection[str] = ()) -> Lives:
        """In steps, what default options hold, in their order."""
        return self._buffers(hidden).held.beside(self._worked_in())

    def later(self, hidden: Collection[str] = ()) -> int:
        """The bytes that later runs hold with default options: a block laid out by the first run, and outputs beside
        it."""
        block, beside = self._laid_out(hidden)
        return self.problem.resident + block + beside.most_at_once()

    def grown_by_default(self, hidden: Collection[str] = ()) -> int:
        """What a process comes to hold with default options: the arena keeps the regions of the first run.

        Later runs ask for their block, which seldom fits into what is free there, and for the rest beside it.
        """
        end = len(self.problem.nodes)
        block, beside = self._laid_out(hidden)
        again = Lives(beside.start + end, beside.end + end, beside.size)
        whole = self.default_lifetimes(hidden).beside(Lives.of([(end, 2 * end, block)]), again)
        return self.problem.resident + grown(whole)

    def _laid_out(self, hidden: Collection[str]) -> tuple[int, Lives]:
        """The block of later runs, and what these ask for one by one."""
        buffers = self._buffers(hidden)
        outer = np.isin(buffers.tenants.value[buffers.firsts], list(self.outputs))
        return block_of(buffers.held.only(~outer)), buffers.held.only(outer).beside(self._worked_in())

    def _worked_in(self) -> Lives:
        steps, work = np.arange(len(self.tenants.work)), self.tenants.work
        return Lives(steps, steps + 1, work).only(work > 0)

    def idle(self, known: Collection[str] = (), hiding: int = 0) -> set[str]:
        """The values to hide, so that no buffers wait for them at the peak of the default session; none of those
        `known`.

        `hiding`: how many further steps to take. Each hides the values for which smaller and smaller buffers wait at
        any time. That can make the layout of later runs smaller, and each hidden value costs some small kernels.
        """
        shown = self.shown.union(known)
        if self.at_the_peak is None or self.at_the_peak[0] != shown:
            self.at_the_peak = shown, *self._at_the_peak(self._flags(shown))
        _, hidden, peak = self.at_the_peak
        if hiding:
            hidden = self._anywhere(self._flags(shown), hidden, peak // WAITING_PARTS[hiding - 1])
        return {self.names[value] for value in hidden}

    def _at_the_peak(self, shown: Flags) -> tuple[set[int], int]:
        """The values to hide, and the peak that is left."""

        def waiting(buffers: Buffers) -> set[int]:
            return buffers.idle_at(buffers.peak()[1], shown)

        hidden = self._hidden_until_none(set(), waiting)
        return hidden, self.tenants.buffers(hidden).peak()[0]

    def _anywhere(self, shown: Flags, known: Collection[int], size: int) -> set[int]:
        """The known values, and all for which buffers of that size or more wait longer than from one step to the
        next."""
        return self._hidden_until_none(set(known), lambda buffers: buffers.ever_idle(size, shown))

    def _hidden_until_none(self, hidden: set[int], waiting: Callable[[Buffers], set[int]]) -> set[int]:
        """These values, and those for which buffers wait still when they are hidden, until there are none."""
        for _ in range(HIDING_ROUNDS):
            fresh = waiting(self.tenants.buffers(hidden)) - hidden
            if not fresh:
                break
            hidden |= fresh
        return hidden

    def _flags(self, names: Collection[str]) -> Flags:
        return np.array([name in names for name in self.names], np.bool_)

    @cached_property
    def tenants(self) -> Tenants:
        return tenants_of(self.problem, self.default, self._shape)

    def _buffers(self, hidden: Collection[str]) -> Buffers:
        return self.tenants.buffers({self.number[name] for name in hidden if name in self.number})

    def _shape(self, value: int) -> object | None:
        """What a buffer and a tensor must have in common for reuse; None for a tensor that never reuses one."""
        return None if value in self.outputs else self.shapes[value]


def _find_written_over(problem: Problem, plan: Plan) -> set[int]:
    """Values that a plan writes over others, those others and their bases: their shapes must be known."""
    base = {write: read for node in problem.nodes for write, read in node.views}
    held: dict[int, int] = {}
    found: set[int] = set()
    stack: list[int] = []
    for statement in plan.statements:
        if isinstance(statement, Allocate):
            held[statement.register] = statement.value
            if statement.shares is not None and statement.value not in base:
                stack += [statement.value, held[statement.shares]]
    while stack:
        value = stack.pop()
        if value != RESIDENT and value not in found:
            found.add(value)
            stack.append(base.get(value, RESIDENT))
    return found
