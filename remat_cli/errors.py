"""What can go wrong that is not our bug: each error has an exit code and says what, where and what to do."""

from __future__ import annotations


class RematError(Exception):
    """An error to be shown to the user as one clear line."""

    code = 3


class Usage(RematError):
    """The command was asked for something it cannot mean."""

    code = 2


class BadInput(RematError):
    """A file that cannot be used."""

    code = 3


class Infeasible(RematError):
    """Proved: no schedule fits the budget."""

    code = 4


class NoPlan(RematError):
    """No plan was found within the limits, and none was proved impossible."""

    code = 5


class Mismatch(RematError):
    """The rewritten model does not do what its plan promised."""

    code = 6
