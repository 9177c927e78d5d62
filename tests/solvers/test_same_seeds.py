"""The same seed gives the same answer as it did before the loops were C++: digests of what numba's loops found.

Two graphs with everything in them that a problem can say, and two networks, go through every loop. Heat and walks'
scores are floating point, of which C libraries round the last bit differently: the table holds for glibc.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from remat_cli.formats import problemfile
from solvers._loops import above
from solvers.annealing.cooling import Kept
from solvers.annealing.local import LocalSearch
from solvers.annealing.reordering import reorder
from solvers.clock import Clock
from solvers.coroutines import run
from solvers.methods.chains.chain import chain
from solvers.methods.chains.floating import floating
from solvers.methods.chains.rotor import rotor
from solvers.methods.exact.improve import Improver
from solvers.methods.mincut.flow import minimum_cut
from solvers.orders.arrays import arrays_of
from solvers.orders.best import Best
from solvers.orders.evict import RULES, Evictor, Rule
from solvers.orders.measure import measure, memory_of, trim
from solvers.orders.traces import cheapest
from solvers.placement.arranging import arrange_in_pattern
from solvers.placement.packing import pack
from solvers.plan import lower
from solvers.problem import Limits, Problem
from solvers.reductions.views import reduced
from tests.solvers.placement.witness import requests
from tests.solvers.random_problems import random_order, random_problem

DATA = Path(__file__).parents[1] / "data"
FOREVER = 1e9
Case = Callable[[Problem, int], Iterator[object]]


def walks(problem: Problem, budget: int) -> Iterator[object]:
    evictor = Evictor(problem)
    for rule in (*RULES, Rule(noise=0.5), Rule(0.7, 0.3, 1.5)):
        order = evictor.run(budget, rule, seed=3)
        yield order, trim(evictor.arrays, order)


def orders_with_repeats(problem: Problem, budget: int) -> Iterator[object]:
    for roof in (None, budget * 11 // 10):
        local = LocalSearch(problem, budget, 5, roof)
        order = np.arange(len(problem.nodes))
        for number in range(6):
            order, over = local.go(order, number, 8000, Clock(FOREVER), Kept.REPEATS if number == 5 else Kept.NOTHING)
            yield order, over


def runs(problem: Problem, budget: int) -> Iterator[object]:
    limits = Limits(clock=Clock(FOREVER), seed=2)
    improver = Improver(Best(problem, budget, limits), lambda: False)
    improver.walk_plainly()
    known = improver.best.fitting or improver.best.leanest
    order = np.arange(len(problem.nodes)) if known is None else known.order
    for seed in range(4):
        order = improver._anneal(order, seed)
        yield order


def memories(problem: Problem, budget: int) -> Iterator[object]:
    arrays, random = arrays_of(problem), Random(1)
    for _ in range(5):
        order = np.array(random_order(random, problem, 8), np.int64)
        room = budget - problem.resident
        yield memory_of(arrays, order), measure(arrays, trim(arrays, order))
        yield above(arrays_of(problem), order, room)


def moved_about(problem: Problem, budget: int) -> Iterator[object]:
    yield reorder(problem, budget, 4).expand(range(len(problem.nodes)))


def placed(problem: Problem, budget: int) -> Iterator[object]:
    orders = [tuple(range(len(problem.nodes))), random_order(Random(6), problem, 5)]
    for order in orders:
        found = pack(requests(problem, lower(problem, order)).lifetimes, clock=Clock(FOREVER), effort=1)
        yield [offset for _, offset in found.allocations], found.block, found.bound


def in_the_pattern(problem: Problem, budget: int) -> Iterator[object]:
    """Sizes that the units of the runtime's chunks do not divide; the room is a little more than the order needs."""
    larger = replace(problem, sizes=tuple(300 * size for size in problem.sizes), resident=0)
    order = tuple(range(len(problem.nodes)))
    peak = measure(arrays_of(larger), order)[1]
    for kept, room in ((Kept.NOTHING, 5 * peak // 4), (Kept.REPEATS, 9 * peak // 8)):
        yield run(arrange_in_pattern(larger, order, room, 3, Clock(FOREVER), kept))
        yield above(arrays_of(larger), np.asarray(order, np.int64), room)


def traced(problem: Problem, budget: int) -> Iterator[object]:
    arrays, random = arrays_of(problem), np.random.default_rng(8)
    free = random.random(len(arrays.size)) < 0.2
    found = cheapest(arrays, free, random.random(len(arrays.size)), random.random(len(arrays.cost)))
    yield from found


LOOPS: tuple[Case, ...] = (
    walks, orders_with_repeats, runs, memories, moved_about, placed, in_the_pattern, traced
)  # fmt: skip


def small(seed: int) -> Problem:
    return reduced(random_problem(Random(seed), 24, plain=seed % 2 == 0)).problem


def network(name: str) -> Problem:
    return problemfile.read(DATA / "networks" / f"{name}.problem.json").problem


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "plain": lambda: small(2),
    "odd": lambda: small(3),
    "unet": lambda: reduced(network("unet")).problem,
    "vgg16": lambda: reduced(network("vgg16")).problem,
}
SHARES = {"plain": 0.7, "odd": 0.8, "unet": 0.6, "vgg16": 0.8}
BY_HAND = [f"{loop.__name__} {name}" for loop in LOOPS for name in PROBLEMS]


def found_by(case: str) -> str:
    """A digest of what a loop finds for a problem."""
    loop, name = case.split()
    problem = PROBLEMS[name]()
    peak = measure(arrays_of(problem), range(len(problem.nodes)))[1]
    (solve,) = (one for one in LOOPS if one.__name__ == loop)
    return digest(solve(problem, int(SHARES[name] * peak)))


def digest(parts: Iterator[object]) -> str:
    return hashlib.sha256(repr([_plain(part) for part in parts]).encode()).hexdigest()[:16]


def _plain(part: object) -> object:
    if isinstance(part, np.ndarray):
        return part.tolist()
    if isinstance(part, tuple):
        return tuple(_plain(one) for one in part)
    return part.item() if isinstance(part, np.generic) else part


def chains() -> Iterator[object]:
    for name in ("rand_L10_f0.5", "rand_L20_f0.5", "toy_table2_M90"):
        told = json.loads((DATA / "chains" / f"{name}.json").read_text())
        one = chain(told["fw"], told["bw"], told["a"], told["abar"], told["o_f"], told["o_b"])
        for program in (rotor, floating):
            yield tuple(map(str, program(one, told["mem_limit"]) or ()))


def flows() -> Iterator[object]:
    random = Random(10)
    for count in (5, 40, 200):
        arcs = [(random.randrange(count), random.randrange(count), random.randint(0, 99)) for _ in range(4 * count)]
        found = minimum_cut(count, arcs, 0, count - 1)
        yield found.value, found.near


def table() -> dict[str, str]:
    return {case: found_by(case) for case in BY_HAND} | {"chains": digest(chains()), "flows": digest(flows())}


EXPECTED: dict[str, str] = json.loads((DATA / "same_seeds.json").read_text())
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library rounds exp and pow differently")


@glibc
@pytest.mark.parametrize("case", BY_HAND)
def test_a_loop_finds_what_it_found(case: str) -> None:
    assert found_by(case) == EXPECTED[case]


@glibc
def test_programs_and_flows_find_what_they_found() -> None:
    assert digest(chains()) == EXPECTED["chains"]
    assert digest(flows()) == EXPECTED["flows"]
