"""What a command says of the time that its limit does not count: the solvers' loops are compiled once after installing.

Invariant: whoever waits is told what for while it lasts, and afterwards how long it took.
"""

from __future__ import annotations

from collections.abc import Callable

GOING_ON = "compiling the solvers' loops, once after installing: not part of the time limit"


def telling(say: Callable[[str], object]) -> None:
    """From here on `say` hears of it when it begins."""
    from solvers.clock import STANDSTILL

    STANDSTILL.tell = lambda: say(GOING_ON)


def compiled() -> list[str]:
    """The note on how long it took, if it was long enough to be noticed."""
    from solvers.clock import STANDSTILL

    seconds = STANDSTILL.seconds()
    words = (
        f"{seconds:.0f} s went into compiling the solvers' loops, once after installing, and are not counted as time"
    )
    return [words] if seconds >= 1 else []
