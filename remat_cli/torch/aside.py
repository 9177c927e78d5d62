"""What stands in for this package with a torch that lacks something it takes from torch's private parts.

Invariant: the training goes on as without remat, and a warning says so.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import torch
from torch._dynamo.backends.registry import lookup_backend

from remat_cli.errors import RematWarning

WITHOUT = "aot_eager"  # torch's own backend that runs the ops of eager


class Aside:
    """Makes stand-ins. `why`: what torch lacks."""

    def __init__(self, why: str) -> None:
        self.why = f"remat: torch {torch.__version__} is not one that remat knows how to work with ({why})"

    def backend(self, *_: Any, **__: Any) -> str:
        warnings.warn(f"{self.why}: '{WITHOUT}' compiles instead, without a budget", RematWarning, stacklevel=2)
        return WITHOUT

    def partitioner(self, *_: Any, **__: Any) -> None:
        warnings.warn(f"{self.why}: torch's own partition is used, without a budget", RematWarning, stacklevel=2)

    def inductor_options(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.partitioner()
        return {}

    def remat(self, module: Any, inputs: Any, **_: Any) -> Any:
        return lookup_backend(self.backend())(module, inputs)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(self.why)
