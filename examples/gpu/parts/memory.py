"""Memory, predicted and measured: by the arena's count, by the driver's, and the least cap that a model runs under.

Invariant: what is measured is `remat verify`'s word, of processes of their own; the prediction was written before.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from examples.gpu.parts.models import Bench, Failed, Model, remat
from examples.gpu.parts.steps import Step
from remat_cli.checking.feeds import draw_feeds
from remat_cli.checking.processes import Bench as Processes
from remat_cli.ingest import ingest

TRIES = 6
TIMEOUT = 120.0


def verified(bench: Bench, name: str, budget: int) -> Iterator[dict[str, Any]]:
    """What `verify` finds of one plan, in bytes, and how far off what was said is."""
    model, share = Model(bench, name), f"{budget}%"
    rewritten, plan = model.rewritten(share), model.plan(share)
    said = model.said(share)
    report = plan.with_name(plan.name.replace(".plan.json", ".report.json"))
    wrong = ""
    try:
        remat("verify", plan, "--model", rewritten, "--provider", bench.device, "-o", report, "-q")
    except Failed as error:
        wrong = str(error)
        if not report.is_file():
            raise
    found = json.loads(report.read_text())
    strict, process = found["strict"], found["process"] or {}
    yield {
        "budget": said.budget,
        "predicted": {"before": said.baseline_peak, "live": said.live, "process": said.arena},
        "live": {"before": strict["before"]["first"], "after": strict["after"]["first"]},
        "process": {"before": process.get("before"), "after": process.get("after"), "stray": process.get("stray")},
        "off": {
            "before": off(strict["before"]["first"], said.baseline_peak),
            "live": off(strict["after"]["first"], said.live),
            "process": off(process.get("after"), said.arena),
        },
        "over_budget": max(0, (process.get("after") or 0) - said.budget),
        "same_bytes": not strict["differs"] and not process.get("differs"),
        "default": {key: found["default"][key] for key in ("before", "after", "failed")},
        "faults": found["faults"] or wrong,
    }


def off(measured: float | None, said: float | None) -> float | None:
    """By what part of what was said the measured is more."""
    return None if not measured or not said else round(measured / said - 1, 5)


def least_cap(bench: Bench, name: str, budget: int) -> Iterator[dict[str, Any]]:
    """The least arena, one region, that the original and the rewritten model run in, over what is live in it."""
    model = Model(bench, name)
    graph = ingest(model.graph(), {})
    said = model.said(f"{budget}%")
    outside = graph.resident if bench.device == "cpu" else 0
    with Processes(draw_feeds(graph, 0), bench.device, TIMEOUT) as processes:
        for what, path, live in (
            ("rewritten", model.rewritten(f"{budget}%"), said.live),
            ("original", model.graph(), said.baseline_peak),
        ):
            low, high = live - outside, round(1.6 * (live - outside))
            for _ in range(TRIES):
                cap = (low + high) // 2
                reply = processes.run(path, "strict", cap=cap)
                low, high = (cap, high) if reply.failed or reply.refused else (low, cap)
            yield {what: {"live_in_arena": live - outside, "least_cap": high, "over": off(high, live - outside)}}


HELD = """
import json, sys
from pathlib import Path
from examples.gpu.parts.memory import held_by
print(json.dumps(held_by(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]) or None)))
"""


def in_a_process(path: Any, device: str, how: str, cap: int = 0) -> dict[str, Any]:
    """`held_by`, in a process of its own: what it leaves behind goes with it."""
    command = [sys.executable, "-c", HELD, str(path), device, how, str(cap)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = ran.stderr.strip().splitlines()
        return {"failed": last[-1][-300:] if last else f"code {ran.returncode}"}
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def held_by(path: Any, device: str, how: str, cap: int | None) -> dict[str, Any]:
    """Three steps with inputs on the device: the most that is held, by the driver's or the kernel's count.

    `first`: in the first step, in which a planned session learns its places and takes memory piece by piece.
    """
    if device == "cuda":
        from remat_cli.checking.watch import MemoryWatch

        with MemoryWatch() as watch:
            step = Step(path, device, how, cap)
            step.run()
            first = watch.restart()
            for _ in range(2):
                step.run()
        return {"first": first, "held": watch.most}
    from remat_cli.checking.weight import resident_now, resident_peak

    step = Step(path, device, how, cap)
    before = resident_now()
    for _ in range(3):
        step.run()
    return {"held": resident_peak() - before + sum(array.nbytes for array in step.feeds.values())}


def allocators(bench: Bench, name: str, budget: int) -> Iterator[dict[str, Any]]:
    """What a training program's process holds with each allocator, its inputs on the device."""
    model = Model(bench, name)
    said = model.said(f"{budget}%")
    for what, path, predicted in (
        ("rewritten", model.rewritten(f"{budget}%"), said.live),
        ("original", model.graph(), said.baseline_peak),
    ):
        for how in ("planned", "strict", "default"):
            found = in_a_process(path, bench.device, how)
            yield {f"{what}, {how}": {**found, "live": predicted, "off": off(found.get("held"), predicted)}}
