"""Chen's schemes: worked by hand, and their generalisations, which on chains are the same."""

from __future__ import annotations

from random import Random

import pytest

from solvers.methods.baselines.chen import chen_sqrt, every_root, greedily
from solvers.methods.baselines.periodic import segment_ends
from solvers.methods.baselines.segments import order_of
from solvers.notes import Note, SolverNote
from solvers.problem import Limits, Status
from solvers.registry import METHODS
from solvers.schedule import baseline, evaluate
from tests.solvers.methods.baselines.chains import reversed_chain, training_chain


def test_nine_ops_make_three_segments_of_three() -> None:
    assert every_root(range(9)) == {2, 5, 8}
    problem = training_chain([1] * 9, [1] * 9)
    order = order_of(problem, every_root(range(9)))
    backward = [17 - i for i in range(9)]  # op -> its gradient
    expected = [*range(9)]
    expected += [backward[8], backward[7], backward[6]]  # the last segment was never dropped
    expected += [3, 4, backward[5], backward[4], backward[3]]
    expected += [0, 1, backward[2], backward[1], backward[0]]
    assert order == expected


@pytest.mark.parametrize("root", [4, 8, 16, 25])
def test_memory_is_of_the_order_of_the_root(root: int) -> None:
    """At most a checkpoint for each segment, one segment, and what an op and its gradient touch."""
    problem = reversed_chain(root * root)
    _, outcome = evaluate(problem, order_of(problem, every_root(range(root * root))))
    assert outcome.peak <= 2 * root + 2
    assert outcome.cost <= 3 * root * root


def test_algorithm_3_by_hand() -> None:
    sizes = list(enumerate([3, 2, 4, 1, 1, 5]))
    everywhere = frozenset(range(6))
    assert greedily(sizes, everywhere, 4) == {1, 3, 5}  # 3+2 > 4; 4+1 > 4; 1+5 > 4
    assert greedily(sizes, frozenset({2, 4}), 4) == {2}  # 3+2+4 > 4; 1+1 is not
    assert greedily(sizes, everywhere, 0) == everywhere
    assert greedily(sizes, everywhere, 16) == set()


def test_segments_of_checkpoint_sequential() -> None:
    """The last segment takes what is left over."""
    assert segment_ends(list(range(10, 20)), 3) == {12, 15}
    assert segment_ends(list(range(10, 20)), 1) == set()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("choice", ["sqrt", "greedy"])
def test_generalisations_are_the_originals_on_chains(choice: str, seed: int) -> None:
    random = Random(seed)
    count = random.randint(1, 24)
    problem = training_chain(random.choices(range(1, 9), k=count), random.choices(range(1, 9), k=count))
    budget = round(baseline(problem)[1].peak * random.choice((0.5, 0.7, 0.9)))
    answers = [METHODS[f"{kind}-{choice}"].load()(problem, budget, Limits()) for kind in ("chen", "ap", "linearized")]
    assert answers[0] == answers[1] == answers[2]


def test_the_least_reachable_peak_is_told() -> None:
    problem = training_chain([1] * 9, [1] * 9)
    answer = chen_sqrt(problem, 3, Limits())
    assert answer.status is Status.UNKNOWN
    assert answer.order is not None
    _, outcome = evaluate(problem, answer.order)
    assert answer.notes == (Note(SolverNote.LEAST_PEAK_REACHED, (outcome.peak,)),)
