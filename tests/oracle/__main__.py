"""By hand: `python -m tests.oracle SEED COUNT [SECONDS] [--updates]` holds so many problems to the oracle, aloud.

`--updates`: only problems in which inputs are updated in their place, and a budget at which something is decided.
`updates.txt` is what it said last.
"""

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
EVERY = 500  # problems between two counts


def main(seed: int, count: int, seconds: float, updates: bool) -> int:
    seen: Counter[str] = Counter()
    small, large = (promises.updating(make) if updates else make for make in (promises.small_case, promises.large_case))
    for number in range(count):
        _small(small(Random(f"{seed} {number}"), seconds), number, seen)
        if number % 10 == 0:
            _large(large(Random(f"{seed} {number} large"), seconds), number, seen)
        if (number + 1) % EVERY == 0 or number + 1 == count:
            print(number + 1, dict(sorted(seen.items())), f"{time.process_time():.0f} s of CPU time", flush=True)
    return 1 if seen["small, wrong"] + seen["large, wrong"] else 0


def _small(case: promises.Case, number: int, seen: Counter[str]) -> None:
    try:
        found = case.solved()
        seen["searches"] += 1
        wrong = [*promises.wrong_figures(case, found), *promises.wrong_proofs(case, found)]
        wrong += promises.wrong_contraction(case)
        if number % 4 == 1:
            seen["certificates"] += len(found.result.grounds)
            wrong += promises.wrong_certificates(case, found)
        if number % 4 == 0:
            seen["searches"] += 1
            wrong += promises.wrong_least_peak(case)
    except CRASHES as error:
        wrong = [f"{type(error).__name__}: {error}"]
        traceback.print_exc()
    _count("small", case, number, wrong, seen)
    if case.method in ("milp", "auto") and not wrong:
        status = found.result.status
        seen[f"{case.method}: {status.value}"] += 1
        if status is Status.UNKNOWN:
            there = optimum(case.problem, case.budget, any_order=case.method == "auto") is not None
            seen[f"{case.method}: unknown, and there {'is a' if there else 'is no'} plan"] += 1


def _large(case: promises.Case, number: int, seen: Counter[str]) -> None:
    try:
        wrong = list(promises.wrong_figures(case, case.solved()))
        seen["searches"] += 1
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
    given = [word for word in sys.argv[1:] if word != "--updates"]
    limit = float(given[2]) if len(given) > 2 else 0.2
    sys.exit(main(int(given[0]), int(given[1]), limit, "--updates" in sys.argv))
