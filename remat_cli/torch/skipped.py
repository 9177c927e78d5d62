"""Recurrent layers, which torch.compile does not trace: the function that calls one runs in eager, without a budget.

Invariant: nothing is changed; a layer is named once, while a backend of ours is in use. `torch._dynamo.reset` forgets
who listens, so each compilation listens anew.
"""

from __future__ import annotations

import re
import warnings
import weakref
from typing import Any

from torch._dynamo import callback_handler
from torch._dynamo.utils import counters

from remat_cli.errors import RematWarning

RECURRENT = "Attempted to wrap RNN, GRU, or LSTM"  # how the reason begins
MODULE = re.compile(r"Developer debug context: (.*)")

_backends: weakref.WeakSet[Any] = weakref.WeakSet()
_told: set[str] = set()


def tell_of_skipped(backend: Any) -> None:
    """Warn, from now on and while the backend lives, of recurrent layers that torch.compile leaves to eager."""
    _backends.add(backend)
    if _look not in callback_handler.end_callbacks:
        _told.update(counters["unimplemented"])
        callback_handler.register_end_callback(_look)


def _look(_: Any) -> None:
    """Look at the reasons for which torch.compile broke off, at the end of each of its runs."""
    new = [reason for reason in counters["unimplemented"] if reason.startswith(RECURRENT) and reason not in _told]
    _told.update(new)
    for reason in new if _backends else ():
        found = MODULE.search(reason)
        name = found[1] if found else "a recurrent layer"
        text = f"remat: torch.compile leaves {name} to eager, and the function that calls it: no budget holds there."
        text += " Compile the modules around it each for itself"
        warnings.warn(text, RematWarning, stacklevel=2)
