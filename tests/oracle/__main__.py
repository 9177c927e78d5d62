"""By hand: `python -m tests.oracle SEED COUNT [SECONDS]` holds so many problems to the oracle; says what it saw."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from random import Random

from solvers.problem import Status
from tests.oracle import promises
from tests.oracle.exact import optimum

CRASHES = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)


def main(seed: int, count: int, seconds: float) -> None:
    seen: Counter[str] = Counter()
    begun = time.process_time()
    for number in range(count):
        _small(promises.small_case(Random(f"{seed} {number}"), seconds), number, seen)
        if number % 10 == 0:
            _large(promises.large_case(Random(f"{seed} {number} large"), seconds), number, seen)
    print(dict(sorted(seen.items())), f"{time.process_time() - begun:.0f} s of CPU time")


def _small(case: promises.Case, number: int, seen: Counter[str]) -> None:
    try:
        found = case.solved()
        wrong = [*promises.wrong_figures(case, found), *promises.wrong_proofs(case, found)]
        wrong += [*promises.wrong_contraction(case), *(promises.wrong_least_peak(case) if number % 4 == 0 else ())]
    except CRASHES as error:
        wrong = [f"{type(error).__name__}: {error}"]
        traceback.print_exc()
    _count("small", case, number, wrong, seen)
    if case.method == "milp" and not wrong:
        status = found.result.status
        seen[f"milp: {status.value}"] += 1
        if status is Status.UNKNOWN:
            there = optimum(case.problem, case.budget, any_order=False) is not None
            seen[f"milp: unknown, and there {'is a' if there else 'is no'} plan"] += 1


def _large(case: promises.Case, number: int, seen: Counter[str]) -> None:
    try:
        wrong = list(promises.wrong_figures(case, case.solved()))
    except CRASHES as error:
        wrong = [f"{type(error).__name__}: {error}"]
        traceback.print_exc()
    _count("large", case, number, wrong, seen)


def _count(what: str, case: promises.Case, number: int, wrong: list[str], seen: Counter[str]) -> None:
    seen[what] += 1
    seen[f"{what}, wrong"] += bool(wrong)
    if wrong:
        print(number, wrong, case, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.2)
