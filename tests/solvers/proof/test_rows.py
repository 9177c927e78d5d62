"""Every row holds for every schedule: random ones, with all the vocabulary, within just their own peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

from solvers.problem import Problem
from solvers.proof.rounding import rounded
from solvers.proof.rows import Name, Row, Rows
from solvers.proof.timeline import Unproved, timeline
from tests.oracle.problems import random_order, random_problem
from tests.oracle.replay import peak_of
from tests.solvers.proof.numbers import any_order, numbers_of


def every_name(random: Random, rows: Rows) -> Iterator[Name]:
    """Of every row there is, but for traces, of which there are many."""
    for node, reads in ((index, node.reads) for index, node in enumerate(rows.problem.nodes[:-1])):
        yield from (("run", node), ("once", node))
        for group in range(rows.groups):
            yield "peak", group, node
            yield from ((kind, group, node, value) for value in reads for kind in ("read", "wait"))
            yield "wait", group, node, *trace(random, rows, node)
            for until in range(group, rows.groups):
                yield "trace", group, until, node, *trace(random, rows, node)
    for group in range(rows.groups):
        yield "fit", group
        for value in range(len(rows.problem.sizes)):
            yield from ((kind, group, value) for kind in ("keep", "block", "through"))


def trace(random: Random, rows: Rows, node: int) -> Iterator[int]:
    while (reads := rows.problem.nodes[node].reads) and random.random() < 0.8:
        value = random.choice(reads)
        node = rows.writer[value]
        yield value


def in_order(random: Random, problem: Problem, order: tuple[int, ...]) -> Rows:
    first = list(dict.fromkeys(order))
    named = [node for node in first if random.random() < 0.9]
    pivots = [node for node in named if random.random() < 0.4]
    return Rows(problem.ended(), peak_of(problem, order), timeline(problem.ended(), named, pivots))


def on_a_path(random: Random, problem: Problem, order: tuple[int, ...]) -> Rows:
    writer, at = problem.writers(), random.randrange(len(problem.nodes))
    path = [at]
    while reads := problem.nodes[at].reads:
        at = writer[random.choice(reads)]
        path.append(at)
    pivots = [node for node in reversed(path) if random.random() < 0.7]
    return Rows(problem.ended(), peak_of(problem, order), timeline(problem.ended(), (), pivots))


def roundings(random: Random, row: Row) -> Iterator[Row]:
    for _ in range(4 if row.terms else 0):
        turned = [place for place in range(len(row.terms)) if random.random() < 0.5]
        divisor = random.choice([*map(abs, row.terms.values()), random.randint(1, 9)])
        low = row.low - sum(row.terms[sorted(row.terms)[place]] for place in turned)
        if divisor and low % divisor:
            yield rounded(row, divisor, turned)


def test_every_row_holds_and_some_are_met() -> None:
    held: Counter[str] = Counter()
    for seed in range(400):
        random = Random(seed)
        problem = random_problem(random, random.randint(2, 9))
        if random.random() < 0.5:
            order = random_order(random, problem, random.randint(0, 8))
            rows = in_order(random, problem, order)
        else:
            order = any_order(random, problem, random.choice((0, 3)))
            rows = on_a_path(random, problem, order)
        numbers = numbers_of(rows, order)
        for name in every_name(random, rows):
            try:
                row = rows.row(name)
            except Unproved:
                continue
            sharper = [("round", one) for one in roundings(random, row)] if name[0] in ("fit", "peak") else []
            for kind, one in ((str(name[0]), row), *sharper):
                total = sum(times * numbers.get(number, 0.0) for number, times in one.terms.items())
                assert total >= one.low - 1e-9 * abs(one.low), (seed, name, order)
                held[kind] += total == one.low and bool(one.terms)
    assert set(held) == {*rows.kinds, "round"}
    assert min(held.values()) > 20, held


def test_what_is_known_of_a_number_is_so() -> None:
    for seed in range(200):
        random = Random(seed)
        problem = random_problem(random, random.randint(2, 9))
        order = any_order(random, problem, 3)
        rows = on_a_path(random, problem, order)
        numbers = numbers_of(rows, order)
        for group in range(rows.groups):
            for node in range(len(problem.nodes)):
                known = rows.runs(group, node)
                assert not isinstance(known, int) or known == numbers.get(("runs", group, node), 0), (seed, group, node)
            for value in range(len(problem.sizes)):
                known = rows.held(group, value)
                assert not isinstance(known, int) or known == numbers.get(("held", group, value), 0), (seed, group)
