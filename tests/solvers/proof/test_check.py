"""What is proved is so: against the oracle, on tiny problems, for the given order and for any."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from solvers.methods.anyorder.windows import heaviest_path
from solvers.problem import Grounds, Node, Problem
from solvers.proof.certificate import Cases, CostProof, Sum
from solvers.proof.check import check_cost, derive_cost
from solvers.proof.timeline import Unproved
from solvers.prover.certify import prove_cost, prove_peak
from tests.ample import ample
from tests.oracle.exact import least_peak, optimum
from tests.oracle.problems import random_problem
from tests.oracle.replay import peak_of

SEED = int(os.environ["FRESH_SEED"])


def grounds_of(problem: Problem, budget: int, anyhow: bool) -> Grounds:
    """Everything looked at."""
    every = tuple(range(len(problem.nodes)))
    ended = problem.ended()
    pivots = tuple(heaviest_path(ended, ended.writers(), [1] * len(ended.nodes))) if anyhow else every
    peaks = tuple((group, node) for group in range(len(pivots) + 1) for node in every)
    return Grounds(budget, () if anyhow else every, pivots, peaks)


@pytest.mark.parametrize("anyhow", [False, True])
def test_nothing_is_proved_that_the_oracle_denies(anyhow: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f" [seed {SEED}] ", end="", flush=True)
    dear = met = impossible = 0
    for number in count():
        if dear == 40:  # few draws ask for a second compute, and about half of those bounds are the optimum
            break
        random = Random(f"{SEED} {anyhow} {number}")
        problem = random_problem(random, random.randint(2, 7), 11)
        full, least = peak_of(problem, range(len(problem.nodes))), least_peak(problem, anyhow)
        budget = random.choice((least - 1, least, least, (least + full) // 2))
        best = optimum(problem, budget, anyhow)
        proof = prove_cost(problem, grounds_of(problem, budget, anyhow), best, ample())
        check_cost(problem, proof)
        if best is None:
            impossible += proof.bound is None
            continue
        assert proof.bound is not None, (SEED, number)
        assert proof.bound <= best, (SEED, number)
        again = best > sum(node.cost for node in problem.nodes)
        dear, met = dear + again, met + (again and proof.bound == best)
    assert impossible
    assert met > dear / 5


def test_no_peak_is_ruled_out_that_can_be_reached() -> None:
    proved = 0
    for number in range(150):
        random = Random(f"{SEED} peak {number}")
        problem = random_problem(random, random.randint(2, 7), 11)
        least = least_peak(problem, any_order=True)
        places = [None, *range(len(problem.nodes))]
        assert not any(prove_peak(problem, least + 1, node) for node in places), (SEED, number)
        proved += any(prove_peak(problem, least, node) is not None for node in places)
    assert proved > 90


def chain() -> tuple[Problem, CostProof]:
    """Three values in a row, all of them read again at the end, in room for two: one is made again, in some case."""
    nodes = tuple(Node(10, (k - 1,) if k else (), (k,)) for k in range(3))
    problem = Problem((*nodes, Node(10, (0, 1), (3,)), Node(10, (3, 2), (4,))), (4, 4, 4, 1, 1), (4,))
    grounds = grounds_of(problem, 10, anyhow=False)
    return problem, prove_cost(problem, grounds, optimum(problem, 10, any_order=False), ample())


def test_rows_that_are_left_out_prove_no_more() -> None:
    problem, proof = chain()
    assert proof.bound == optimum(problem, 10, any_order=False)
    assert proof.bound > 50
    refused = 0
    for place, step in enumerate(proof.steps):
        if not isinstance(step, Sum):
            continue
        for k in range(len(step.rows)):
            rows, weights = step.rows[:k] + step.rows[k + 1 :], step.weights[:k] + step.weights[k + 1 :]
            steps = (*proof.steps[:place], replace(step, rows=rows, weights=weights), *proof.steps[place + 1 :])
            less = derive_cost(problem, replace(proof, steps=steps))
            assert less is not None
            assert less <= proof.bound
            refused += less < proof.bound
    assert refused > 1


def test_cases_cover_all_there_are() -> None:
    problem, proof = chain()
    done = Sum((), (), 0, True)
    number = ("held", 3, 0)

    def proved(*steps: Sum | Cases) -> int | None:
        return derive_cost(problem, CostProof(10, None, proof.order, proof.pivots, (), steps))

    assert proved(Cases(number, 1, 2), done, done) == 50
    for wrong in (
        (Cases(number, 1, 1), done),  # one case twice
        (Cases(number, 1, 2), done),  # one is missing
        (Cases(number, 0, 1), done),  # itself
        (Cases(number, 1, 2), Cases(number, 3, 4), done, done, done),  # told apart twice
        (Cases(("through", 3, 0), 1, 2), done, done),  # not of two cases
        (Cases(("held", 0, 0), 1, 2), done, done),  # known
        (Cases(("runs", 9, 0), 1, 2), done, done),  # no such group
        (done, done),  # of no use
        (),
    ):
        with pytest.raises(Unproved):
            proved(*wrong)
