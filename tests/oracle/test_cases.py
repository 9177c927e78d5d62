"""Problems on which a method once claimed what is not so, crashed, gave up or hung."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_cli.formats.problemfile import read
from tests.oracle import promises
from tests.sampling import few

CASES = {
    "false_infeasible_2717": (256, ("milp", "auto")),  # a view of an older copy is overwritten
    "false_infeasible_resident_view": (1700, ("milp",)),  # a view of a weight that waits for a computed shape
    "view_of_resident_reads_shape": (1108, ("milp",)),
    "lp_rounding_494": (4175, ("lp-rounding",)),  # rounding dropped what is made only once
    "lp_rounding_2492": (2502366562348, ("lp-rounding",)),
    "missed_935_budget2622": (2622, ("milp", "auto", "evict")),
    "missed_1581_budget3334402088188": (3334402088188, ("milp", "auto", "evict")),
    "paper29": (15500344988426, ("milp-paper",)),  # did not hear of its time limit
}


@pytest.mark.parametrize("name", few(CASES, 3))
def test_no_longer(name: str, data: Path) -> None:
    budget, methods = CASES[name]
    problem = read(data / "wrong_once" / f"{name}.problem.json").problem
    for method in methods:
        case = promises.Case(problem, budget, method, seconds=300.0 if method in ("milp", "auto") else 1.0)
        found = case.solved()
        wrong = [*promises.wrong_figures(case, found)]
        if len(problem.nodes) <= 8:
            wrong += [*promises.wrong_proofs(case, found), *promises.wrong_contraction(case)]
        assert not wrong
        if method in ("milp", "auto"):
            assert found.result.status.found
