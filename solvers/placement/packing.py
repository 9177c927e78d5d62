"""Temporary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.placement.greedy import place
from solvers.placement.lifetimes import requests
from solvers.plan import Plan
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Placement:
    block: int
    bound: int
    allocations: tuple[tuple[int, int], ...]


def placement_of(problem: Problem, plan: Plan) -> Placement:
    asked = requests(problem, plan)
    rest = list(range(len(asked.lifetimes)))
    lives = [asked.lifetimes[k] for k in rest]
    size = np.array([-(-life.bytes // 64) for life in lives], np.int64)
    start = np.array([life.start for life in lives], np.int64)
    end = np.array([life.end for life in lives], np.int64)
    order = np.argsort(-size, kind="stable")
    offset = np.zeros(len(lives), np.int64)
    height = place(order, start, end, size, 1 << 62, offset) if lives else 0
    where = {k: int(o) * 64 for k, o in zip(rest, offset, strict=True)}
    allocations = tuple((life.bytes, where.get(k, -1)) for k, life in enumerate(asked.lifetimes))
    return Placement(int(height) * 64, 0, allocations)
