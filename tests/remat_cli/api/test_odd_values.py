"""What means nothing, given for each keyword of each function: one short line of ours, and no other error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from remat_cli.api.keywords import MethodOptions, OptimizerSettings, ScheduleSettings

DATA = Path(__file__).parents[2] / "data"
MODEL, FORWARD = DATA / "torch_mlp.onnx", DATA / "torch" / "language_train_whole.onnx"


class Nothing:
    """A thing that is no number, word, path, list or switch."""

    def __repr__(self) -> str:
        return "nothing " * 50


ODD = (Nothing(), b"\xff", 2j, float("nan"), np.array([1.5, 2.5]), int, Path("x" * 300), "\0")
FUNCTIONS: dict[str, tuple[dict[str, Any], tuple[type, ...]]] = {
    "grad": ({"model": FORWARD, "optimizer": "adamw"}, (OptimizerSettings,)),
    "solve": ({"model": MODEL, "budget": "90%", "method": "milp", "cache": False}, (MethodOptions,)),
    "sweep": ({"model": MODEL, "budgets": "90%", "methods": "evict", "cache": False}, ()),
    "max_batch": ({"model": FORWARD, "budget": "1MB", "estimate": "v100", "optimizer": "adamw"}, (OptimizerSettings,)),
    "profile": ({"model": MODEL, "estimate": "v100", "cache": False}, ()),
    "in_pieces": ({"model": MODEL, "largest_value": 3}, ()),
    "check": ({"certificate": "none.json", "plan": "none.plan.json"}, ()),
    "load_plan": ({"path": "none.plan.json"}, ()),
    "verify": ({"plan": "none.plan.json"}, ()),
    "session": ({"plan": "none.plan.json"}, ()),
    "emit": ({"plan": "none.plan.json"}, ()),
    "initial_state": ({"forward": FORWARD, "step": "none.plan.json"}, ()),
    "step": (
        {"plan": FORWARD, "forward": FORWARD, "optimizer": "adamw", "schedule": "cosine", "steps": 5},
        (OptimizerSettings, ScheduleSettings),
    ),
}
RAW = (TypeError, ValueError, AttributeError, LookupError, OSError, RuntimeError, ArithmeticError, AssertionError)
HEARD = {("report", int), ("schedule", int)}  # whatever can be called


def keywords(name: str) -> Iterator[str]:
    _, settings = FUNCTIONS[name]
    for parameter in inspect.signature(getattr(remat, name)).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter.name
    for kind in settings:
        yield from kind.__annotations__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_means_nothing_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not refused comes to where the work would begin, which counts as taken."""

    class Taken(Exception):
        pass

    def work(*_: object, **__: object) -> None:
        raise Taken

    # the last, since what is imported on the way to the others keeps the `ask` that it finds
    for place in ("sweeping.Sweep.run", "largest.find_largest", "emitting.emit", "solving.ask"):
        monkeypatch.setattr(f"remat_cli.actions.{place}", work)
    function: Callable[..., object] = getattr(remat, name)
    base = FUNCTIONS[name][0]
    wrong = []
    for keyword in keywords(name):
        for odd in ODD:
            if (keyword, odd) in HEARD if isinstance(odd, type) else False:
                continue
            try:
                function(**{**base, keyword: odd})
                raise Taken
            except remat.RematError as error:
                if len(str(error)) > 400 or "\n" in str(error):
                    wrong.append((keyword, str(odd)[:20], "is not a short line", str(error)[:80]))
            except (Taken, *RAW) as error:
                wrong.append((keyword, str(odd)[:20], type(error).__name__, str(error)[:80]))
    assert not wrong
