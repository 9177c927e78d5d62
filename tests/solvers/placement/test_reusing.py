"""onnxruntime's static free list: compiled, and on paper."""

from __future__ import annotations

import random
from collections.abc import Hashable

import numpy as np
import pytest

from solvers.placement.reusing import tenants_of
from solvers.plan import Allocate, Compute, Deallocate, Plan, lower
from solvers.problem import Node, Problem
from tests.solvers.placement.test_pattern import freeing
from tests.solvers.random_problems import random_order


def buffers_on_paper(plan: Plan, shapes: dict[int, Hashable]) -> list[list[tuple[int, int, int]]]:
    """Value, first and last step of what lies in each buffer, one after the other."""
    gone = {one.register for one in plan.statements if isinstance(one, Deallocate)}
    root, holds, step = dict[int, int](), dict[int, set[int]](), 0
    free: list[tuple[Hashable, int]] = []
    buffer, value_of, found = dict[int, int](), dict[int, int](), list[list[tuple[int, int, int]]]()
    for one in plan.statements:
        if isinstance(one, Compute):
            step += 1
        elif isinstance(one, Allocate):
            root[one.register] = here = one.register if one.shares is None else root[one.shares]
            holds.setdefault(here, set()).add(one.register)
            if one.shares is None:
                value_of[here] = one.value
                kind = shapes.get(one.value) if one.bytes and here in gone else None
                old = [place for place, (shape, _) in enumerate(free) if shape == kind and kind is not None]
                buffer[here] = free.pop(old[-1])[1] if old else len(found)
                found += [] if old else [[]]
                found[buffer[here]].append((one.value, step, -1))
        else:
            here = root[one.register]
            holds[here].discard(one.register)
            if not holds[here]:
                value, first, _ = found[buffer[here]][-1]
                found[buffer[here]][-1] = value, first, step - 1
                if value in shapes and here in gone and any(size for size in [_bytes(plan, here)]):
                    free.append((shapes[value], buffer[here]))
    return [[(v, f, step - 1 if end < 0 else end) for v, f, end in lives] for lives in found]


def _bytes(plan: Plan, register: int) -> int:
    return next(one.bytes for one in plan.statements if isinstance(one, Allocate) and one.register == register)


@pytest.mark.parametrize("seed", range(30))
def test_the_compiled_buffers_are_those_on_paper(seed: int) -> None:
    draw, problem = random.Random(seed), freeing(seed)
    plan = lower(problem, random_order(random.Random(seed), problem, 4))
    shapes: dict[int, Hashable] = {value: draw.choice("ab") for value in range(len(problem.sizes))}
    hidden = {value for value in shapes if draw.random() < 0.2}
    tenants = tenants_of(problem, plan, shapes.get)
    found = tenants.buffers(hidden)
    rows: dict[int, list[tuple[int, int, int]]] = {}
    for number, buffer in enumerate(found.of.tolist()):
        rows.setdefault(buffer, []).append(
            (int(tenants.value[number]), int(tenants.first[number]), int(tenants.last[number]))
        )
    seen = {value: shape for value, shape in shapes.items() if value not in hidden}
    assert [rows[buffer] for buffer in sorted(rows)] == buffers_on_paper(plan, seen)
    steps = range(len(tenants.work))
    held = [sum(size for first, end, size in zip(*found.held, strict=True) if first <= step < end) for step in steps]
    worked = [bytes_ + int(tenants.work[step]) for step, bytes_ in enumerate(held)]
    assert found.peak() == (max(worked), worked.index(max(worked)))


def test_what_a_buffer_waits_for_is_hidden_or_its_first_tenant_where_that_must_be_shown() -> None:
    # 0 dies at once, and its buffer waits for 3 while 1 and 2 are made
    nodes = [Node(1, (), (0,))] + [Node(1, (value - 1,), (value,)) for value in (1, 2, 3)]
    problem = Problem(tuple(nodes), (8, 4, 4, 8), ())
    plan = lower(problem, (0, 1, 2, 3))
    tenants = tenants_of(problem, plan, {0: "wide", 3: "wide"}.get)
    buffers, shown = tenants.buffers(()), np.zeros(4, np.bool_)
    assert len(buffers.firsts) == 3
    assert buffers.idle_at(2, shown) == buffers.ever_idle(8, shown) == {3}
    assert buffers.idle_at(1, shown) == buffers.ever_idle(9, shown) == set()
    shown[3] = True
    assert buffers.ever_idle(8, shown) == {0}
    shown[0] = True
    assert buffers.ever_idle(8, shown) == set()
    assert len(tenants.buffers({0}).firsts) == len(tenants.buffers({3}).firsts) == 4
