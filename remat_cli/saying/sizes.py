"""The largest size of a step, as the user reads it.

Invariant: figures are those of the answer.
"""

from __future__ import annotations

from typing import Any

from remat_cli.planning.kinds import held
from remat_cli.plans.sizes import Largest
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes


def as_object(found: Largest, dim: str, plan: str) -> dict[str, Any]:
    """The object that `remat max-batch --json` prints; the keys are a contract."""
    recorded = found.plan.recorded
    return {
        "batch": found.size,
        "status": "proved" if found.proved else "best known",
        "budget": found.budget,
        "peak": recorded.peak,
        "arena": recorded.promises.arena,
        "overhead": found.plan.overhead,
        "next": {"batch": found.next.size, "status": found.next.verdict, "why": found.next.why},
        "below": found.below and {"batch": found.below.size, "why": found.below.why},
        "baselines": found.baselines,
        "dim": dim,
        "method": recorded.method,
        "plan": plan,
        "notes": list(found.plan.notes),
    }


def as_text(found: Largest, dim: str) -> str:
    recorded = found.plan.recorded
    rows = [(f"largest {dim}", ""), (recorded.method, str(found.size))]
    rows += [(name, "not known" if size is None else str(size or "none")) for name, size in found.baselines.items()]
    needs = show_bytes(held(recorded.peak, recorded.kind, recorded.promises))
    lines = [
        table(rows),
        f"{dim} {found.size}: {needs} of {show_bytes(found.budget)}, {found.plan.overhead:+.1%} time",
    ]
    if found.proved:
        lines.append(f"proved: {dim} {found.next.size} does not fit; {found.next.why}")
    else:
        lines.append(f"best known: of {dim} {found.next.size} nothing is known; {found.next.why}")
        if found.below:
            lines.append(f"proved: {dim} {found.below.size} does not fit; {found.below.why}")
    return "\n".join(lines)
