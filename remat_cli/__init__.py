"""remat: fit a training step into a memory budget, at the least extra time. `import remat_cli as remat`.

Invariant: importing this imports nothing heavy: each name is brought when it is first used.
"""

from __future__ import annotations

from _thread import RLock

TYPE_CHECKING = False  # as typing's, which takes its time
if TYPE_CHECKING:
    from typing import Any

    from remat_cli.actions.certifying import Proved as Proved
    from remat_cli.api.costing import in_pieces as in_pieces
    from remat_cli.api.costing import profile as profile
    from remat_cli.api.grad import grad as grad
    from remat_cli.api.ranges import max_batch as max_batch
    from remat_cli.api.ranges import sweep as sweep
    from remat_cli.api.running import emit as emit
    from remat_cli.api.running import load_plan as load_plan
    from remat_cli.api.running import verify as verify
    from remat_cli.api.sessions import session as session
    from remat_cli.api.shrink import shrink as shrink
    from remat_cli.api.solve import check as check
    from remat_cli.api.solve import solve as solve
    from remat_cli.api.step import initial_state as initial_state
    from remat_cli.api.step import step as step
    from remat_cli.errors import BadInput as BadInput
    from remat_cli.errors import Infeasible as Infeasible
    from remat_cli.errors import Interrupted as Interrupted
    from remat_cli.errors import Mismatch as Mismatch
    from remat_cli.errors import NoPlan as NoPlan
    from remat_cli.errors import RematError as RematError
    from remat_cli.errors import RematWarning as RematWarning
    from remat_cli.errors import Unfinished as Unfinished
    from remat_cli.errors import Usage as Usage
    from remat_cli.plans.planned import Planned as Planned
    from remat_cli.plans.points import Curve as Curve
    from remat_cli.plans.sizes import Largest as Largest
    from remat_cli.training.step import Step as Step
else:  # a type checker sees the names above, and no others

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__import__(__name__))
        if found := in_the_way():
            raise ImportError(found)
        from profiles.importing import whole

        with _bringing, whole():
            return getattr(import_module(PLACES[name]), name)


def in_the_way() -> str | None:
    """What to do about a module of the user's that Python takes for a package of remat's; None if there is none. It is
    asked before anything is imported, so that no file of the user's runs for our sake."""
    import os
    import sys
    from importlib.util import find_spec

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in ("solvers", "profiles"):
        known = sys.modules.get(name)
        found = find_spec(name) if known is None else None
        place = found.origin if found is not None else getattr(known, "__file__", None)
        if place and not os.path.abspath(place).startswith(os.path.join(root, name) + os.sep):
            return f"{place} stands in the way of remat's own package '{name}': rename it, or move it to another folder"
    return None


_bringing = RLock()  # held by a thread that imports a part of remat
ROOMS = {  # of remat_cli.api
    "costing": ("profile", "in_pieces"),
    "grad": ("grad",),
    "ranges": ("sweep", "max_batch"),
    "running": ("emit", "verify", "load_plan"),
    "sessions": ("session",),
    "shrink": ("shrink",),
    "solve": ("solve", "check"),
    "step": ("step", "initial_state"),
}
PLACES = {
    **{name: f"remat_cli.api.{room}" for room, names in ROOMS.items() for name in names},
    **dict.fromkeys(
        (
            *("RematError", "Usage", "BadInput", "Infeasible", "NoPlan", "Interrupted", "Mismatch"),
            *("RematWarning", "Unfinished"),
        ),
        "remat_cli.errors",
    ),
    "Proved": "remat_cli.actions.certifying",
    "Step": "remat_cli.training.step",
    "Planned": "remat_cli.plans.planned",
    "Curve": "remat_cli.plans.points",
    "Largest": "remat_cli.plans.sizes",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *PLACES})


def _born() -> None:
    """In a forked child: the runtime is not taken apart at its end, where it was loaded before the fork."""
    import sys

    if "onnxruntime" in sys.modules:
        from profiles.forking import keep

        keep()


BRINGING_SECONDS = 10.0  # a fork waits so long for a thread that imports a part of remat


def _mind_forks() -> None:
    """A child may be the first to make a session; where its parent has loaded the runtime, its end would hang.

    No child is made while another thread imports a part of remat: it would wait for ever for that thread's import.
    """
    import os

    held: list[bool] = []

    def hold() -> None:
        held.append(_bringing.acquire(timeout=BRINGING_SECONDS))

    def let_go() -> None:
        if held.pop():
            _bringing.release()

    def born() -> None:
        let_go()
        _born()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=born)


_mind_forks()
