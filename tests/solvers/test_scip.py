"""A solve that is left while it runs, and gone on with."""

from __future__ import annotations

from random import Random

import pytest

from solvers import scip
from solvers.clock import COLUMN_MOVES, ITERATION_MOVES, LINEAR_MOVES, Clock, limited
from solvers.problem import Status


def knapsacks(count: int = 45, rows: int = 8) -> scip.Program:
    random, program = Random(1), scip.Program()
    columns = [program.variable(-random.randint(20, 99)) for _ in range(count)]
    for _ in range(rows):
        weights = [random.randint(10, 99) for _ in columns]
        program.row(columns, weights, high=sum(weights) // 3)
    return program


def test_a_solve_left_while_it_runs_is_never_begun_a_second_time_beside_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads in one model: errors, crashes, and bounds above the optimum."""
    program = knapsacks()
    plain = scip.solve(program, scip.Settings(clock=Clock(1e9)))
    assert plain.status is Status.OPTIMAL
    monkeypatch.setattr(scip, "_PATIENCE", 0.0)
    solving = scip.Solving(program, scip.Settings(clock=Clock(0.0)))
    left = solving.wait()
    assert left.status is not Status.OPTIMAL
    thread = solving._thread
    solving.go_on(Clock(1e9), nodes=1 << 30, enough=None)
    assert solving._thread is thread or not thread.is_alive()
    while (answer := solving.wait()).status is not Status.OPTIMAL:  # the time it was begun with may have ended it
        solving.go_on(Clock(1e9), nodes=1 << 30, enough=None)
    assert answer.cost == pytest.approx(plain.cost)
    assert answer.bound == pytest.approx(plain.bound)


def test_a_solve_that_pauses_comes_to_what_one_comes_to_that_does_not() -> None:
    program = knapsacks()
    plain = scip.solve(program, scip.Settings(clock=Clock(1e9)))
    solving = scip.Solving(program, scip.Settings(clock=Clock(1e9), iterations=50))
    answers = [solving.wait()]
    while solving.paused:
        before = solving.iterations
        solving.go_on(Clock(1e9), nodes=0, enough=None, iterations=50)
        answers.append(solving.wait())
        assert solving.iterations > before
    assert len(answers) > 5
    assert sorted(answer.bound for answer in answers) == [answer.bound for answer in answers]
    assert (answers[-1].cost, answers[-1].work, answers[-1].nodes) == (plain.cost, plain.work, plain.nodes)


def test_a_solve_that_pauses_ends_with_whoever_began_it() -> None:
    solving = scip.Solving(knapsacks(), scip.Settings(clock=Clock(1e9), iterations=50))
    solving.wait()
    thread = solving._thread
    assert solving.paused
    assert thread.is_alive()
    del solving
    thread.join(60.0)
    assert not thread.is_alive()


def test_what_is_solved_stays_so_where_it_is_told_to_go_on() -> None:
    solving = scip.Solving(knapsacks(), scip.Settings(clock=Clock(1e9)))
    answer = solving.wait()
    assert answer.status is Status.OPTIMAL
    assert answer.values is not None
    solving.go_on(Clock(1e9), nodes=1 << 30, enough=None, starts=[answer.values])
    assert solving.wait() == answer


@pytest.mark.parametrize("relaxed", [False, True])
def test_a_solve_takes_no_more_work_than_there_is(relaxed: bool) -> None:
    """Not even within one linear program: that of a paper's program takes ten thousand iterations."""
    program = knapsacks(200, 60)
    plain = scip.solve(program, scip.Settings(clock=Clock(1e9), nodes=1), relaxed=relaxed)
    each = LINEAR_MOVES if relaxed else ITERATION_MOVES
    clock = limited(moves=20 * each + COLUMN_MOVES * 200 + 260 * relaxed)  # so much it takes to begin
    answer = scip.solve(program, scip.Settings(clock=clock), relaxed=relaxed)
    assert plain.work > 40
    assert answer.work <= 40
    assert answer.bound <= plain.bound + 1e-6
    assert clock.worn()


def test_a_program_that_work_is_too_little_to_pose_is_left() -> None:
    clock = limited(moves=COLUMN_MOVES * 45)
    answer = scip.solve(knapsacks(45), scip.Settings(clock=clock))
    assert (answer.status, answer.values, answer.bound) == (Status.UNKNOWN, None, -scip.INFINITY)
