"""Memory, predicted and measured: by the arena's count and by the driver's.

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


HELD = """
import json, sys
from pathlib import Path
from examples.gpu.parts.memory import held_by
print(json.dumps(held_by(Path(sys.argv[1]), sys.argv[2], sys.argv[3])))
"""


def in_a_process(path: Any, device: str, how: str) -> dict[str, Any]:
    """`held_by`, in a process of its own: what it leaves behind goes with it."""
    command = [sys.executable, "-c", HELD, str(path), device, how]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = ran.stderr.strip().splitlines()
        return {"failed": last[-1][-300:] if last else f"code {ran.returncode}"}
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def held_by(path: Any, device: str, how: str) -> dict[str, Any]:
    """Three steps with inputs on the device: the most that is held, by the driver's or the kernel's count.

    `first`: in the first step, in which a planned session learns its places and takes memory piece by piece.
    """
    if device == "cuda":
        from remat_cli.checking.weight import MemoryWatch

        with MemoryWatch() as watch:
            step = Step(path, device, how)
            step.run()
            first = watch.restart()
            for _ in range(2):
                step.run()
        return {"first": first, "held": watch.most}
    from remat_cli.checking.weight import resident_now, resident_peak

    step = Step(path, device, how)
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
