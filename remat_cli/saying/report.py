"""Answers as users read them: JSON objects, tables and single lines.

Invariant: this module only spells the figures of an Answer, it computes none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from remat_cli.model.proved import PlanProof, Promise, overhead_of
from remat_cli.model.sessions import Session
from remat_cli.notes.words import sentences
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.proofs import least_needed
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.breakdown import Breakdown, at_peaks
from remat_cli.saying.tables import comma_separated, table
from remat_cli.units import show_bytes, show_change, show_share, show_time
from solvers.problem import Status
from solvers.registry import METHODS
from solvers.simulate import Outcome

Row = tuple[str, str, str, str]  # of a table: what, before, after, change

ENDED = {
    "time": "; more time (--time-limit) may find a better plan",
    "limit": "; more work (--work-limit) may find a better plan",
    "patience": "; nothing better came for as much work as this took",
}


def as_object(answer: Answer, plan: str | None) -> dict[str, Any]:
    """The object that `remat solve --json` prints; the keys are a contract."""
    outcome, result, promise = answer.schedule.outcome, answer.schedule.result, answer.promise
    before, after = at_peaks(answer.subject, answer.schedule.plan if answer.found else None)
    found: dict[str, Any] = {
        "status": answer.status.value,
        "method": answer.method,
        "budget": answer.budget,
        "peak": outcome.peak if outcome and answer.found else None,
        "cost": outcome.cost if outcome and answer.found else None,
        "baseline_peak": answer.baseline.peak,
        "baseline_cost": answer.baseline.cost,
        "overhead": answer.overhead if answer.found else None,
        "emitted_cost": promise.time if promise and answer.found else None,
        "bound": answer.bound,
        "bound_any_order": answer.bound_any_order,
        "gap": answer.gap if answer.found else None,
        "resident": answer.subject.problem.resident,
        **({"held_once": once} if (once := answer.subject.held_once) else {}),
        "recomputed": answer.recomputed if answer.found else None,
        "seconds": round(answer.seconds, 3),
        "plan": plan,
        "notes": list(sentences(answer.notes)),
        "session": answer.session.name if answer.session else None,
        "runtime": answer.session.runtime if answer.session else None,
        **_needs(answer, promise),
        "wall_seconds": round(answer.limits.clock.elapsed(), 3),
        "stopped": why_stopped(answer),
        "made_by": answer.made_by or getattr(result, "made_by", None) or answer.method,
        "found_by": result.found_by or None,
        "bound_by": result.bound_by or None,
        "parts": [{**asdict(part), "seconds": round(part.seconds, 3)} for part in result.parts],
        "cached": answer.cached,
        "breakdown": {"before": before.as_object(), "after": after.as_object() if after else None},
    }
    if not answer.found:
        found["least_peak"] = least_needed(answer)
        found["least_peak_bound"] = None if result.needed is None else result.needed + answer.aside
    return found


def parts_table(answer: Answer) -> str:
    """What each part of the search took and won as a table, the parts that took longest first."""
    result = answer.schedule.result
    rows = [("part of the search", "tries", "processor", "cheaper plans", "higher bounds", "")]
    for part in sorted(result.parts, key=lambda part: -part.seconds):
        found = ["the plan"] if part.name == result.found_by else []
        found += ["the bound"] if part.name == result.bound_by else []
        figures = str(part.tries), f"{part.seconds:.2f} s", str(part.won), str(part.raised)
        rows.append((part.name, *figures, " and ".join(found)))
    return table(rows, left=(0, 5))


def breakdown_table(before: Breakdown, after: Breakdown | None = None) -> str:
    """The breakdown as a table: a line for each role that takes memory, without a plan and with it."""
    sizes = [(role.value, size, after.sizes[role] if after else 0) for role, size in before.sizes.items()]
    rows = [_row(f"  {name}", old, new, show_bytes) for name, old, new in sizes if old or new]
    rows.append(_row("  in all", before.total, after.total if after else 0, show_bytes))
    head = ("at the peak", "before", "after", "change") if after else ("at the peak", "")
    return table([head, *(row[: len(head)] for row in rows)])


def _needs(answer: Answer, promise: Promise | None) -> dict[str, int | None]:
    """The memory that the model needs; for a bare problem, its live bytes alone."""
    outcome = answer.schedule.outcome
    if promise is None:
        live = outcome.peak if outcome and answer.found else None
        return {"live": live, "arena": None, "default_arena": None, "session_itself": None}
    needs = {"live": promise.live, "arena": promise.arena, "default_arena": promise.default_arena}
    return needs | {"session_itself": answer.itself}


def why_stopped(answer: Answer) -> str:
    """The reason why the search ended."""
    clock = answer.limits.clock
    if clock.stopped():
        return "interrupt"
    if answer.status in (Status.OPTIMAL, Status.ORDER_OPTIMAL, Status.INFEASIBLE):
        return "gap"
    if answer.schedule.result.patience_lost:
        return "patience"
    return "time" if answer.cut and (clock.most is None or answer.seconds >= clock.seconds) else "work"


def summary(answer: Answer, verbose: bool = False, least_memory: bool = False) -> str:
    """Before and after, as a table of a few lines, and one sentence of proof; `verbose`: all figures, and the status.

    `least_memory`: less memory was asked for, not less time.
    """
    outcome = answer.schedule.outcome
    assert outcome is not None
    again = answer.recomputed or 0
    promise = answer.promise and replace(answer.promise, itself=answer.itself)
    held, time = held_rows(promise, answer.session, verbose), promise.time if promise else None
    words = before_and_after(answer.baseline, outcome, answer.subject, again, held, time, brief=not verbose)
    if not verbose:
        return f"{words}\n{proof_line(answer, least_memory)}{_ended(answer)}"
    words += f"\n{answer.status.value} within {show_bytes(answer.budget)} ({answer.method}, {answer.seconds:.1f} s)"
    if answer.proved and (said := slower(answer.proved)):
        words += f"{_of_which(answer)}: at most {said}"
    return words + _ended(answer)


def as_it_is(answer: Answer) -> str:
    """One line for a model that keeps to its budget by itself."""
    words = f"fits as it is, {show_bytes(answer.held)} of {show_bytes(answer.budget)}"
    if answer.itself is not None:
        words += f"; the session itself holds about {show_bytes(answer.itself)} beside"
    if answer.promise is None or answer.session is None or not answer.session.grows:
        return words
    return f"{words}; the process holds {held_words(answer.promise, answer.session)}"


def held_words(promise: Promise, session: Session) -> str:
    """The process's memory in words; it is approximate where the session's arena grows."""
    assert promise.arena is not None
    return f"about {show_bytes(promise.arena)}" if session.grows else show_bytes(promise.arena)


def before_and_after(
    before: Outcome,
    after: Outcome,
    subject: Subject,
    again: int,
    held: Sequence[Row] = (),
    time: int | None = None,
    brief: bool = False,
) -> str:
    """The memory and cost of a plan of the subject, beside every op run once in the model's order.

    `again`: how many ops it computes again. `held`: rows of what the process holds for it as a model. `time`: what that
    takes. `brief`: without what the memory is made of, and of two times the longer one.
    """
    longer = max(time or 0, after.cost)
    fixed, once = subject.problem.resident, subject.held_once
    parts = [
        _row("  fixed (inputs, weights)", fixed, fixed, show_bytes),
        _row("  the rest", before.peak - fixed, after.peak - fixed, show_bytes),
        *([("  new state", show_bytes(once), "held once", "")] if once else []),
    ]
    rows = [
        ("", "without remat", "with the plan", "change"),
        _row("memory of the step", before.peak, after.peak, show_bytes),
        *(parts if not brief else []),
        *held,
        _row("time of the step", before.cost, longer if brief else after.cost, show_time),
        ("ops computed again", "0", str(again), ""),
    ]
    if longer > after.cost and not brief:
        rows.insert(-1, _row("  with what emit adds", before.cost, longer, show_time))
    return table(rows)


def held_rows(promise: Promise | None, session: Session | None, verbose: bool = True) -> list[Row]:
    """Rows of the process's memory for the plan; `verbose`: by allocator."""
    if promise is None or session is None or promise.arena is None:
        return []
    rows = [("in a stock session" if session.grows else "held by the process", "", held_words(promise, session), "")]
    if promise.itself is not None:
        rows.append(("and the session itself", "", f"about {show_bytes(promise.itself)}", ""))
    if promise.block is not None and verbose:
        rows.append(("  the planned block", "", show_bytes(promise.block), ""))
    if promise.default_arena is not None and verbose and not session.grows:
        rows.append(("  with onnxruntime's arena", "", show_bytes(promise.default_arena), ""))
    return rows


def _row(name: str, before: int, after: int, show: Callable[[int], str]) -> Row:
    return name, show(before), show(after), show_change(before, after)


def proof_line(answer: Answer, least_memory: bool) -> str:
    """What is proved of the plan, for who knows neither gap nor bound: one sentence without its full stop."""
    if least_memory:
        return "Proved: no plan holds less" if answer.status is Status.OPTIMAL else "Not proved to be the least memory"
    if answer.proved and (said := slower(answer.proved)):
        return f"Proved{_of_which(answer)}: at most {said}"
    return "Nothing is proved of how near this is to the fastest plan"


def _of_which(answer: Answer) -> str:
    """Of which schedules that is proved, where others might answer too."""
    if answer.subject.pieces:
        return ", of ops in these pieces"
    return ", of whole ops" if answer.asked.get("pieces") else ""


def _ended(answer: Answer) -> str:
    """Why there is no better plan, where more could be done."""
    if answer.cached:
        return "; kept from before (--force searches again)"
    if not METHODS[answer.method].proof:
        return ""
    why = why_stopped(answer)
    return ENDED.get("limit" if why == "work" and answer.cut else why, "")


def slower(proved: PlanProof) -> str:
    """How much slower than the best possible plan this one is at most, as far as bounds tell."""
    every, own = proved.gap_any_order, proved.closer_in_order
    if every is None:
        return "" if own is None else f"{show_share(own)} slower than the bound"
    words = f"{show_share(every)} slower than the fastest plan possible"
    return words if own is None else f"{words}, {show_share(own)} in this order of ops"


def comparison(answers: Sequence[Answer], as_csv: bool) -> str:
    """One line for each method: the memory and cost of its plan, and whether it keeps to the budget."""
    rows = [["method", "peak", "overhead", "seconds", "bound", "within budget"]]
    for found in answers:
        outcome, bound = found.schedule.outcome, found.bound
        peak = "-" if outcome is None else str(outcome.peak) if as_csv else show_bytes(outcome.peak)
        over = "-" if found.overhead is None else f"{found.overhead:.6f}" if as_csv else f"{found.overhead:+.2%}"
        least = "-" if bound is None else str(bound) if as_csv else f"{overhead_of(bound, found.baseline.cost):+.2%}"
        rows.append([found.method, peak, over, f"{found.seconds:.2f}", least, "yes" if found.found else "no"])
    return comma_separated(rows) if as_csv else table(rows)
