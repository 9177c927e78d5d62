"""`torch.compile(module, backend="remat")`: the backend by its name, which torch finds among installed entry points.

Options are those of `backend`, as `options={"budget": "60%"}`, or variables of the environment such as REMAT_BUDGET.

Invariant: the same options mean the same backend.
"""

from __future__ import annotations

import inspect
import os
from functools import cache
from typing import Any

from remat_cli.torch.backend import Backend, backend
from remat_cli.torch.skipped import look_before_backward

OPTIONS = tuple(inspect.signature(backend).parameters)
IN_ENVIRONMENT = {f"REMAT_{name.upper()}": name for name in OPTIONS}

look_before_backward()  # torch imports this when it is first asked for the name


def remat(module: Any, inputs: Any, *, options: dict[str, Any] | None = None) -> Any:
    """What torch.compile calls for each graph."""
    return named(options)(module, inputs)


def named(options: dict[str, Any] | None) -> Backend:
    """The backend of these options; what they leave open, the environment says."""
    said = {name: os.environ[variable] for variable, name in IN_ENVIRONMENT.items() if variable in os.environ}
    asked = said | (options or {})
    unknown = sorted(set(asked) - set(OPTIONS))
    if unknown:
        raise ValueError(f"backend 'remat' has the options {', '.join(OPTIONS)}, not {', '.join(unknown)}")
    if "budget" not in asked:
        raise ValueError("backend 'remat' needs a budget: options={'budget': '60%'}, or REMAT_BUDGET=60% around it")
    if "time_limit" in asked:
        asked["time_limit"] = float(asked["time_limit"])
    return _made(tuple(sorted(asked.items())))


@cache
def _made(asked: tuple[tuple[str, Any], ...]) -> Backend:
    return backend(**dict(asked))
