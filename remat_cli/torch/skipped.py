"""What torch.compile leaves to eager, where no budget holds: functions that call a recurrent layer, functions in which
a graph breaks inside a loop, modules with a hook of their backward pass, what calls torch.autograd.grad, functions that
users or torch keep from being compiled, and layers of torch inside which a graph breaks or around which `fully_shard`
breaks it.

torch counts its reasons for the whole process, in words that many modules share: a count that grew tells of a new one.
Of layers of its own that are compiled in place it gives none: these are looked for.

Invariant: nothing is changed, and only what comes about while a backend of ours is in use is named.
`torch._dynamo.reset` forgets who listens, and its counts, so each compilation listens and counts anew.
"""

from __future__ import annotations

import re
import warnings
import weakref
from collections import Counter
from typing import Any

from remat_cli.errors import RematWarning
from remat_cli.torch.eager import before_backward
from remat_cli.torch.private import callback_handler, counters, disable, graph_break_reasons, trace_rules
from remat_cli.torch.wrapped import shards_in_place, shards_of_torchs_own, torchs_own_in_place

RECURRENT = "Attempted to wrap RNN, GRU, or LSTM"  # how the reason begins
AROUND = re.compile(r"when calling `([^`]+)`. Reason: Dynamo does not support RNN")  # where the graph breaks around one
HOOKED = "Module-level backwards hooks"
MODULE = re.compile(r"Developer debug context: (.*)")
LEFT = re.compile(r"Developer debug context: frame skipped: (.*)")  # FUNCTION (FILE line NUMBER)
SKIPPED = re.compile(r"Developer debug context: module: (torch\.[a-z]\S*), qualname: (\S+),")  # of a function of torch
DISABLED = re.compile(r"Skip \w+ `torch.compiler.disable\(\)`d function[\s\S]*context: <function (\S+) at")
CALLING = "nn/modules/module.py"  # where torch calls a module and its hooks
WRAPPER = "DistributedDataParallel"  # what breaks the graph in it holds nothing that the wrapped module makes
GRADIENTS = "using `torch.autograd.grad`"  # how the reason begins
INSIDE = "break inside torch: "  # how reasons of ours begin
SHARDED = "break around shards of torch: "

NAME = "remat"  # of a backend that torch.compile is told by its name

_backends: weakref.WeakSet[Any] = weakref.WeakSet()
_seen: Counter[str] = Counter()
_told: dict[str, None] = {}  # in the order in which it was said


def tell_of_skipped(backend: Any) -> None:
    """Warn, from now on and while the backend lives, of what torch.compile leaves to eager."""
    _backends.add(backend)
    look_before_backward()
    if _look not in callback_handler.end_callbacks:
        _told.clear()
        _new_reasons()
        callback_handler.register_end_callback(_look)


def told(backend: Any) -> tuple[str, ...]:
    """All that was said since torch.compile began anew, for any module: torch skips code from then on, whichever module
    it runs for, and gives no reason again. Where it forgot who listens, and no compilation came to a backend since, the
    reasons that it counted meanwhile are said now."""
    if _look not in callback_handler.end_callbacks:
        _told.clear()
        callback_handler.register_end_callback(_look)
    _look(None)
    look_in_place(backend)
    return tuple(_told)


def look_in_place(backend: Any) -> None:
    """Warn of layers of torch that were compiled in place with it. All modules of the process are looked at."""
    if names := torchs_own_in_place(backend, NAME):
        _say(
            f"remat: torch.compile leaves {', '.join(names)} to eager, for torch's own code is not compiled in place:"
            " no budget holds there. Compile layer.forward in place of the layer"
        )


def look_before_backward() -> None:
    """When the next backward pass begins, look at layers of torch for backends that nothing was compiled with until
    then: those that compile look by themselves."""
    before_backward(_look_where_nothing_compiled)


def _look_where_nothing_compiled(_: Any) -> None:
    for backend in [*_backends] or [None]:  # by its name a backend is made when it compiles
        if backend is None or not backend.plans:
            look_in_place(backend)


@disable
def _look(_: Any) -> None:
    """Look at the reasons for which torch.compile broke off, at the end of each of its runs.

    It is not compiled itself: torch holds a lock meanwhile, for which that compilation would wait for ever.
    """
    new = _new_reasons()
    if not _backends:
        return
    for reason in new:
        if not reason.startswith(SHARDED):  # of other modules, it may be
            _told.pop(_words(reason), None)
    for text in map(_words, [*new, _sharded(shards_in_place([*_backends], NAME))]):
        _say(text)


def _say(text: str) -> None:
    """Warn of what was not told yet."""
    if text and text not in _told:
        _told[text] = None
        warnings.warn(text, RematWarning, stacklevel=3)


def _new_reasons() -> list[str]:
    """The reasons that were counted since the last look."""
    now = _reasons()
    new = [*(now - _seen)]
    _seen.clear()
    _seen.update(now)
    return new


def _reasons() -> Counter[str]:
    own = map(_inside, graph_break_reasons)
    return Counter(counters["unimplemented"]) + Counter(counters["graph_break"]) + Counter(filter(None, own))


def _inside(reason: Any) -> str:
    """The place whose call broke the graph inside code of torch, which torch.compile takes up nowhere but inside a
    caller's; nothing for other reasons."""
    stack = reason.user_stack
    if len(stack) < 2 or not trace_rules.check_file(stack[1].filename).skipped:
        return ""
    why = reason.reason.splitlines()[0]
    if why.startswith(HOOKED):  # torch counts it besides
        return ""
    if WRAPPER in reason.reason or any("/nn/parallel/" in frame.filename for frame in stack):
        return ""
    between = {frame.filename.rpartition("/torch/")[2] for frame in stack[1:-1]}
    if "/distributed/fsdp/" in stack[-1].filename and between == {CALLING}:
        return _sharded(shards_of_torchs_own())
    return f"{INSIDE}{stack[0].filename} line {stack[0].lineno} calls, for torch's own code breaks the graph ({why})"


def _sharded(names: list[str]) -> str:
    """The reason of layers of torch that `fully_shard` divided: its hooks are not compiled, so that torch.compile would
    have to begin again in their own code, where it never does. Of those that are compiled in place it gives no
    reason."""
    return SHARDED + ", ".join(names) if names else ""


def _words(reason: str) -> str:
    """What is said of a reason; nothing where a break only divides the graph, for its parts share the budget."""
    if left := LEFT.search(reason):
        why = reason.splitlines()[0]
        return (
            f"remat: torch.compile leaves {left[1]} to eager, for a loop breaks the graph ({why}): no budget holds"
            " there. Take what breaks the graph out of the loop, or compile the modules in it each for itself"
        )
    if reason.startswith(INSIDE):
        return f"remat: torch.compile leaves to eager what {reason.removeprefix(INSIDE)}: no budget holds there"
    if reason.startswith(SHARDED):
        return (
            f"remat: torch.compile leaves {reason.removeprefix(SHARDED)} to eager, for fully_shard breaks the graph"
            " around torch's own code: no budget holds there. Compile layer.forward in place of the layer"
        )
    if found := SKIPPED.search(reason) or DISABLED.search(reason):
        if WRAPPER in reason:
            return ""
        return f"remat: torch.compile leaves {'.'.join(found.groups())} to eager: no budget holds there"
    if reason.startswith(RECURRENT):
        module = MODULE.search(reason)
        name = module[1] if module else "a recurrent layer"
        return (
            f"remat: torch.compile leaves {name} to eager, and the function that calls it: no budget holds there."
            " Compile the modules around it each for itself"
        )
    if around := AROUND.search(reason):
        name = ".".join(re.findall(r"'(\w+)'", around[1].partition("_modules")[2])) or around[1]
        return f"remat: torch.compile leaves the recurrent layer '{name}' to eager: no budget holds there"
    if reason.startswith(GRADIENTS):
        return (
            "remat: torch.compile leaves to eager what calls torch.autograd.grad, with a torch.autograd.Function whose"
            " backward does so: no budget holds there"
        )
    if reason.startswith(HOOKED):
        return (
            "remat: torch.compile leaves modules with a backward hook to eager: no budget holds there. A hook of a"
            " tensor (Tensor.register_hook) is planned with all else"
        )
    return ""
