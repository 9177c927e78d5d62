"""The point of it all: the largest batch that the original runs within a limit, against the largest that a plan does.

Invariant: a batch counts only if it ran, in a process of its own, and the driver counted no more than the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from examples.gpu.parts.memory import in_a_process
from examples.gpu.parts.models import Bench, Failed, Model
from examples.gpu.parts.steps import step_time

LIMIT = 16_000_000_000
FACTORS = (1.7, 2.0, 2.5, 3.0, 4.0)
SMALL_FACTORS = (1.1,)
TRIES = 5
LESS = 0.98  # each try is of so much of the one before
OWN = 0.02  # of the limit is left to what CUDA's libraries take for a session
TOO_SLOW = 0.6  # of extra time: no larger batch is tried


def largest(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """First the original, in the strict session's arena and by places; then plans, larger and larger.

    Costs of other batches are a datasheet's: measuring each would take the device's time, and a plan needs ratios.
    """
    bench = replace(bench, datasheet=bench.device == "cuda")
    model = Model(bench, name)
    limit = LIMIT if not bench.small else round(1.5 * model.needs())
    yield {"limit": limit, "usual_batch": model.usual_batch}
    guess = fitting(model, round((1 - OWN) * limit))
    ran = 0
    for how in ("strict", "planned"):
        ran = 0
        for batch in tried(guess, bench.small):
            found = runs(model.of_batch(batch).graph(), bench, how, limit)
            yield {f"original, {how}, {batch}": found}
            if found["ran"]:
                ran = batch
                break
        yield {f"original, {how}": {"largest": ran}}
    if not ran:
        return
    took = step_time(model.of_batch(ran).graph(), bench.device, "strict", bench.seconds)
    yield {"original": {"batch": ran, **took, "examples_per_second": round(1e3 * ran / took["ms"], 3)}}
    factors = SMALL_FACTORS if bench.small else FACTORS
    with ThreadPoolExecutor() as pool:  # a plan that fails is asked for again below, where that is said
        budget = room(limit)
        [*map(Future.exception, [pool.submit(model.of_batch(round(factor * ran)).plan, budget) for factor in factors])]
    for factor in factors:
        found = planned(model.of_batch(round(factor * ran)), bench, limit, took["ms"] / ran)
        yield {f"plan, x{factor}": found}
        if not found["ran"] or found["extra_time"] > TOO_SLOW:
            return


def fitting(model: Model, limit: int) -> int:
    """The batch that should just fit: memory is a straight line in it."""
    one, other = model.usual_batch, 2 * model.usual_batch
    low, high = model.of_batch(one).needs(), model.of_batch(other).needs()
    slope = (high - low) / (other - one)
    return max(1, int((limit - low) / slope) + one)


def tried(guess: int, small: bool) -> Iterator[int]:
    """The guess, which counts no memory that kernels work in, and what is less by two per cent each time."""
    batch = guess
    for _ in range(1 if small else TRIES):
        yield batch
        batch = min(batch - 1, int(batch * LESS))
        if batch < 1:
            return


def room(limit: int) -> str:
    """The budget of a plan."""
    return str(round((1 - OWN) * limit))


def runs(path: Any, bench: Bench, how: str, limit: int) -> dict[str, Any]:
    """Whether it ran and held no more than the limit. On a CPU the runtime's own few MB are counted too."""
    found = in_a_process(path, bench.device, how)
    return {**found, "ran": "held" in found and (found["held"] <= limit or bench.device == "cpu")}


def planned(model: Model, bench: Bench, limit: int, before: float) -> dict[str, Any]:
    """A plan of a larger batch, run. `before`: ms of the original for each example."""
    batch, budget = model.batch or 0, room(limit)
    try:
        rewritten = model.rewritten(budget)
    except Failed as error:
        return {"batch": batch, "ran": False, "why": str(error)[-400:]}
    said = model.said(budget)
    found = runs(rewritten, bench, "planned", limit)
    shown = {"batch": batch, **found, "said": said.arena, "predicted_overhead": said.overhead}
    if not found["ran"]:
        return shown
    took = step_time(rewritten, bench.device, "planned", bench.seconds)
    extra = took["ms"] / batch / before - 1
    return {**shown, **took, "examples_per_second": round(1e3 * batch / took["ms"], 3), "extra_time": round(extra, 4)}
