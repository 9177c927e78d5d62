"""What can go wrong that is not our bug: each error has an exit code and says what, where and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any


class RematError(Exception):
    """An error to be shown to the user as one clear line."""

    code = 3
    kind = "bad input"

    def as_object(self) -> dict[str, Any]:
        """For whoever reads JSON."""
        return {"code": self.code, "kind": self.kind, "says": str(self)}


class RematWarning(UserWarning):
    """What a program should know of an answer that it was given; the command prints the same as a note."""


class Usage(RematError):
    """The command was asked for something it cannot mean."""

    code = 2
    kind = "usage"


class BadInput(RematError):
    """A file that cannot be used."""

    code = 3


class InTheWay(BadInput):
    """A file that stands where another is to be written."""


class NoSchedule(RematError):
    """There is no plan. `least_peak`: the least that was found, in bytes, where something was."""

    def __init__(self, says: str, least_peak: int | None = None) -> None:
        super().__init__(says)
        self.least_peak = least_peak

    def as_object(self) -> dict[str, Any]:
        return {**super().as_object(), "least_peak": self.least_peak}


class Infeasible(NoSchedule):
    """Proved: no schedule fits the budget."""

    code = 4
    kind = "infeasible"


class NoPlan(NoSchedule):
    """No plan was found within the limits, and none was proved impossible."""

    code = 5
    kind = "no plan"


class NotVerified(RematError):
    """`report`: all that was measured."""

    def __init__(self, says: str, report: object = None) -> None:
        super().__init__(says)
        self.report = report


class Unfinished(NotVerified):
    """Time was up before it was known whether a plan does as it promised."""

    code = 5
    kind = "unfinished"


class Mismatch(NotVerified):
    """The rewritten model does not do what its plan promised."""

    code = 6
    kind = "mismatch"


LISTED = 60  # names that a message lists at most


def meant(name: str, known: Iterable[str]) -> str:
    """What a name that there is not may stand for: the nearest one, or all that there are."""
    names = tuple(known)
    near = get_close_matches(name.lower(), names, 1)
    if not near and len(names) > LISTED:
        return f"there are {len(names)} others, such as {names[0]}"
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"


def error_in(said: Mapping[str, Any], error: RematError | None) -> dict[str, Any]:
    """What a command says as JSON, with the error that it ends in."""
    return {**said} if error is None else {**said, "error": error.as_object()}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a program while remat searched. `plan`: the best by then, a `Planned`, None where there was none;
    `found`: what was found of a sweep or of a largest size."""

    def __init__(self, plan: Any = None, found: object = None) -> None:
        super().__init__("interrupted" if plan is None else "interrupted; the best plan so far is its .plan")
        self.plan, self.found = plan, found
