"""The buffers of a session with default options: onnxruntime's static free list, laid out before any run.

A dead buffer waits for a later tensor of its shape, the last freed first, however long that takes. While it waits, it
is held and idle.

Invariant: no two tenants of a buffer live at one step. A buffer begins with its first tenant and ends with its last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from solvers._loops import take_buffers
from solvers.orders.arrays import Ints
from solvers.placement.lives import Lives
from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Problem

NEVER = -1  # the shape of what neither takes a dead buffer nor leaves one


@dataclass(frozen=True, slots=True)
class Tenants:
    """What a plan holds in memory of its own, in the order in which it asks for it.

    `value`: the first value that lies there; `first` and `last`: steps; `shape`: the number of its shape, or NEVER.
    `events`: tenants as they begin and end, `~tenant` for an end. `work`: what each step works in.
    """

    value: Ints
    size: Ints
    first: Ints
    last: Ints
    shape: Ints
    events: Ints
    work: Ints

    def buffers(self, hidden: Collection[int]) -> Buffers:
        """The buffers, if the session's planner does not see the shapes of these values."""
        unseen = np.isin(self.value, np.fromiter(hidden, np.int64, len(hidden)))
        shape = np.where(unseen, NEVER, self.shape)
        return Buffers(self, take_buffers(self.events, shape))


def tenants_of(problem: Problem, plan: Plan, shape_of: Callable[[int], Hashable | None]) -> Tenants:
    """The tenants of a plan. `shape_of`: the shape of a value, None where it never lies in another's buffer."""
    gone = {one.register for one in plan.statements if isinstance(one, Deallocate)}
    numbers: dict[Hashable, int] = {}
    rows: list[list[int]] = []  # value, size, first, last, shape
    tenant: dict[int, int] = {}  # register -> in which tenant's memory it lies
    holders: list[int] = []
    events: list[int] = []
    work: list[int] = []
    for statement in plan.statements:
        match statement:
            case Allocate(value, register, size, shares):
                if shares is None:
                    shape = shape_of(value) if size and register in gone else None
                    number = NEVER if shape is None else numbers.setdefault(shape, len(numbers))
                    events.append(len(rows))
                    rows.append([value, size, len(work), len(work), number])
                    holders.append(0)
                tenant[register] = len(rows) - 1 if shares is None else tenant[shares]
                holders[tenant[register]] += 1
            case Compute(node):
                work.append(problem.nodes[node].workspace)
            case Deallocate(register):
                left = tenant.pop(register)
                holders[left] -= 1
                if not holders[left]:
                    rows[left][3] = len(work) - 1
                    events.append(~left)
    for left in tenant.values():
        rows[left][3] = len(work) - 1
    values, sizes, firsts, lasts, shapes = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    return Tenants(values, sizes, firsts, lasts, shapes, np.array(events, np.int64), np.array(work, np.int64))


@dataclass(frozen=True)
class Buffers:
    """Tenants in their buffers: `of` the buffer of each."""

    tenants: Tenants
    of: Ints

    @cached_property
    def _order(self) -> Ints:
        """The tenants by buffer, and of each buffer as they come."""
        return np.argsort(self.of, kind="stable")

    @cached_property
    def firsts(self) -> Ints:
        """The first tenant of each buffer."""
        return self._order[np.diff(self.of[self._order], prepend=-1) > 0]

    @cached_property
    def _lasts(self) -> Ints:
        return self._order[np.diff(self.of[self._order], append=len(self.of)) > 0]

    @property
    def held(self) -> Lives:
        """The buffers as lifetimes, in steps, in the order in which they are asked for."""
        here = self.tenants
        return Lives(here.first[self.firsts], here.last[self._lasts] + 1, here.size[self.firsts])

    def peak(self) -> tuple[int, int]:
        """The most that is held at any step, with what that works in, and the first such step."""
        here = self.tenants
        change = np.zeros(len(here.work) + 1, np.int64)
        np.add.at(change, here.first[self.firsts], here.size[self.firsts])
        np.add.at(change, here.last[self._lasts] + 1, -here.size[self.firsts])
        held = np.cumsum(change)[:-1] + here.work
        step = int(held.argmax()) if len(held) else 0
        return (int(held[step]), step) if len(held) and held[step] > 0 else (0, 0)

    def idle_at(self, step: int, shown: npt.NDArray[np.bool_]) -> set[int]:
        """The values to hide so that no buffer is held idle at the step."""
        return self._waiting(lambda before, after: (before < step) & (step < after), shown)

    def ever_idle(self, size: int, shown: npt.NDArray[np.bool_]) -> set[int]:
        """The values to hide so that no buffer of that size or more is held idle at any step."""
        return self._waiting(lambda before, after: before + 1 < after, shown, size)

    def _waiting(
        self, idle: Callable[[Ints, Ints], npt.NDArray[np.bool_]], shown: npt.NDArray[np.bool_], size: int = 0
    ) -> set[int]:
        """For each buffer that waits the tenant that it waits for, or its first; none where both are `shown`."""
        here, order = self.tenants, self._order
        before, after = order[:-1], order[1:]
        same = (self.of[before] == self.of[after]) & (here.size[before] >= size)
        waits = np.flatnonzero(same & idle(here.last[before], here.first[after]))
        wanted, first = here.value[after[waits]], here.value[self.firsts[self.of[after[waits]]]]
        chosen = np.where(shown[wanted], first, wanted)
        return set(chosen[~shown[chosen]].tolist())
