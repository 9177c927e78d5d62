"""remat: fit a training step into a memory budget, at the least extra time. `import remat_cli as remat`.

Invariant: importing this imports nothing heavy: each name is brought when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes its time
if TYPE_CHECKING:
    from typing import Any

    from remat_cli.actions.api import check as check
    from remat_cli.actions.api import emit as emit
    from remat_cli.actions.api import grad as grad
    from remat_cli.actions.api import in_pieces as in_pieces
    from remat_cli.actions.api import load_plan as load_plan
    from remat_cli.actions.api import max_batch as max_batch
    from remat_cli.actions.api import profile as profile
    from remat_cli.actions.api import session as session
    from remat_cli.actions.api import solve as solve
    from remat_cli.actions.api import sweep as sweep
    from remat_cli.actions.api import verify as verify
    from remat_cli.actions.certifying import Proved as Proved
    from remat_cli.actions.stepping import initial_state as initial_state
    from remat_cli.actions.stepping import step as step
    from remat_cli.errors import BadInput as BadInput
    from remat_cli.errors import Infeasible as Infeasible
    from remat_cli.errors import Mismatch as Mismatch
    from remat_cli.errors import NoPlan as NoPlan
    from remat_cli.errors import RematError as RematError
    from remat_cli.errors import Usage as Usage
    from remat_cli.planning.plans.planned import Planned as Planned
    from remat_cli.planning.plans.points import Curve as Curve
    from remat_cli.planning.plans.sizes import Largest as Largest
    from remat_cli.training.step import Step as Step
else:  # a type checker sees the names above, and no others

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(PLACES[name]), name)


FUNCTIONS = (
    *("grad", "profile", "in_pieces", "solve", "check", "sweep", "max_batch", "emit", "verify", "session", "load_plan"),
)
PLACES = {
    **dict.fromkeys(FUNCTIONS, "remat_cli.actions.api"),
    **dict.fromkeys(("RematError", "Usage", "BadInput", "Infeasible", "NoPlan", "Mismatch"), "remat_cli.errors"),
    **dict.fromkeys(("initial_state", "step"), "remat_cli.actions.stepping"),
    "Proved": "remat_cli.actions.certifying",
    "Step": "remat_cli.training.step",
    "Planned": "remat_cli.planning.plans.planned",
    "Curve": "remat_cli.planning.plans.points",
    "Largest": "remat_cli.planning.plans.sizes",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *PLACES})
