"""What `verify` does once its flags are read, and says: the promised session as a table, what else was measured in a
line each; and all as an object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from profiles.measure import BUSY
from profiles.system import processors
from remat_cli.actions import emitting, verifying
from remat_cli.actions.verifying import ALLOWED_BYTES, Trial, Verified
from remat_cli.checking import Mode, Process, Verification
from remat_cli.checking.compare import EXACT, FACTOR, IN_PIECES, Tolerance
from remat_cli.checking.exactness import FACTOR_MOST, Exactness
from remat_cli.checking.processes import BegunRun
from remat_cli.commands import options
from remat_cli.errors import error_in
from remat_cli.events import EventQueue
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.plans.planned import Planned, load_planned
from remat_cli.saying.progress import Line
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes, show_change, show_time

TIMING_SECONDS = 6.0  # seconds
NEAR_SHARE = 0.05  # of what was said that a process holds: closer than that is as it was said


def verify(plan: Path, model: Path | None, output: Path | None, given: Mapping[str, Any]) -> None:
    """Run both models, and say what came of it; raises what the command ends in, if they do not do as promised."""
    with Line(given["quiet"]) as line:
        line.say(f"reading {plan} ...")
        planned = load_planned(plan)
        found, rewritten = _verified(planned, plan, model, output, given, line)
    error = found.refusal("the rewritten model" if rewritten is None else rewritten.name)
    said = error_in(as_object(found, rewritten), error)
    if output:
        write_whole(output, json.dumps(said, indent=1) + "\n")
    if given["as_json"]:
        options.say_object(said)
    elif not given["quiet"]:
        click.echo("\n".join((summary(found), *times(found, planned))))
        if rewritten is None:
            there = emitting.place_of(planned).name
            click.echo(
                f"{there} was not made from this plan, so a model was made for this run; `remat emit {plan}` writes it."
            )
    if error is not None:
        raise error


def _verified(
    planned: Planned, plan: Path, model: Path | None, output: Path | None, given: Mapping[str, Any], line: Line
) -> tuple[Verified, Path | None]:
    """What came of the runs, and the rewritten model, which is made if it is not there.

    None for its path where the model at its place is of another plan: that stays, and this one's is made for the runs.
    """
    emitting.graph_of(planned)
    rewritten = model or emitting.place_of(planned)
    check_place(output, FileKind.VERIFIED, plan, planned.subject.path, rewritten)
    if not rewritten.is_file():
        line.say(f"writing {rewritten} ...")
        emitting.write(emitting.emit(planned), emitting.place_of(planned, model))
    events: EventQueue[BegunRun] = EventQueue()
    trial = Trial(
        **{name: given[name] for name in ("feeds", "seed", "provider", "timeout", "level", "clock")},
        near=Tolerance(given["rtol"], given["atol"]),
        seconds=TIMING_SECONDS if given["timed"] else 0.0,
        events=events,
    )
    with events.read_by(lambda run: line.say(f"{run} ...")):
        if model is None and not verifying.is_made_from(rewritten, plan, planned):
            line.say(f"rewriting {planned.subject.path} ...")
            return verifying.verified(planned, trial), None
        return verifying.tried(planned, rewritten, verifying.promise_of(rewritten, plan, planned), trial), rewritten


def as_object(found: Verified, rewritten: Path | None) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "model": None if rewritten is None else str(rewritten),
        "session": found.session.name,
        "runtime": found.session.runtime,
        "budget": found.budget,
        "threads": found.threads,
        "predicted": {
            "strict": found.promise.strict,
            "default": found.promise.default,
            "process": found.promise.arena,
            "session_itself": found.promise.itself,
        },
        **asdict(found.report),
        "faults": list(found.faults),
        "unknown": list(found.unknown),
        "seeded": found.draws,
    }


def summary(found: Verified) -> str:
    """The promised session as a table; what else was measured in a line each."""
    report, name, weight = found.report, found.session.name, found.report.process
    same = "same bytes" if found.near == EXACT else "near enough"
    mode = report.mode(name)
    rows = [["measured", "before", "after", "change", "predicted", "outputs"]]
    rows.append(_row(f"live, {name} session", mode, mode.before.first, mode.after.first, found.promise.live, same))
    if mode.after.second is not None:
        rows.append(_row("  second run", mode, mode.before.second, mode.after.second, found.promise.later, same))
    if weight is not None:
        rows.append(_row("the process", weight, weight.before, weight.after, found.promise.arena, same))
        rows += _loading(weight, found.promise.itself)
    words = [table(rows), *_heavier(weight, found.promise.arena)]
    words += [
        *_others(report, name, same),
        *_tolerance(found.near, report.exactness),
        *_varying(found.near, mode, weight),
    ]
    if found.draws:
        count = f"{found.draws} random op{'s' if found.draws > 1 else ''}"
        words.append(f"{count} without a seed got one for the comparison, because no two runs of such a model agree.")
    if found.threads != processors():
        count = f"{found.threads} thread{'s' if found.threads > 1 else ''}"
        words.append(f"Both ran with {count}, like the profile. Each more takes 64 KiB more in convolutions.")
    return "\n".join(words)


def times(found: Verified, plan: Planned) -> Iterator[str]:
    """Both models' times beside those that the costs foretell."""
    timed, foretold = found.report.timed, (plan.recorded.baseline_cost, plan.recorded.promises.time)
    if timed is None:
        return
    for name, took, said in zip(("The original", "The rewritten model"), (timed.before, timed.after), foretold):
        predicted = ""
        if said and plan.subject.measured:
            predicted = f", {show_time(said)} predicted ({show_change(took, said, 1)})"
        yield f"{name} takes {show_time(took)}{predicted}."
    before, after = foretold
    foreseen = f", {show_change(before, after, 1)} predicted" if before and after else ""
    yield f"Rewriting changes the time by {show_change(timed.before, timed.after, 1)}, measured in turns{foreseen}."
    if timed.again is not None:
        again, number = timed.again, f"{timed.again.ops} op{'s' if timed.again.ops > 1 else ''}"
        words = f"{number} computed again: {show_time(again.took)}. Their first computes took {show_time(again.first)}."
        yield words + (f" Predicted were {show_time(again.foretold)}." if plan.subject.measured else "")
    if timed.waited > BUSY:
        yield f"Other programs used the processors (threads waited {timed.waited:.0%} of the time), so times read high."
    if timed.probe and plan.subject.probe and abs(off := timed.probe / plan.subject.probe - 1) > NEAR_SHARE:
        yield f"This machine is {1 + off:.2f} times as slow as when the ops were profiled."


def _heavier(weight: Process | None, said: int | None) -> Iterator[str]:
    """Where the process is not as heavy as it was said to be."""
    if weight is None or weight.after is None or said is None:
        return
    off = weight.after - said
    if -off > max(NEAR_SHARE * said, ALLOWED_BYTES):  # more than is allowed is a fault
        yield f"The process holds {show_bytes(-off)} less than predicted ({off / said:+.1%})."
    if weight.stray:
        yield f"{weight.stray} allocations were not as planned and got memory of their own."


def _loading(weight: Process, said: int | None) -> Iterator[list[str]]:
    """Rows of what the sessions themselves hold, and what making them takes at most."""
    for name, sizes, foretold in (
        ("the session itself", weight.loaded, said),
        ("  most while loading", weight.loading, None),
    ):
        if sizes[1] is not None:
            shown = ["" if size is None else show_bytes(size) for size in (*sizes, foretold)]
            yield [name, *shown[:2], "", shown[2], ""]


def _others(report: Verification, promised: str, same: str) -> Iterator[str]:
    """The sessions that the plan is not for, in a line each."""
    for name in ("strict", "default"):
        if name == promised:
            continue
        mode = report.mode(name)
        sizes = [show_bytes(peak) for peak in (mode.before.first, mode.after.first) if peak is not None]
        live = f", {' before, '.join(sizes)} after" if sizes[1:] else ""
        yield f"{name} session, not promised: {_outputs(mode, same)}{live}"


def _tolerance(near: Tolerance, exactness: Sequence[Exactness]) -> Iterator[str]:
    """How near that is, and what a run in float64 says of it."""
    if near == IN_PIECES:
        yield f"sums are made in pieces: outputs may be off by {near.scale:g} of the largest number in each"
        worst = max(exactness, key=lambda one: one.after, default=None)
        if worst is None:
            yield "what is right was not computed in float64: the model is too large for that, or it is random"
        else:
            most = f"at most {FACTOR_MOST:g} times as far off float64 as the original's"
            off = f"{worst.output} is off by {worst.after:.2g} of its norm, the original's by {worst.before:.2g}"
            yield f"or {most}: worst of {len(exactness)} outputs, {off}"
    elif near != EXACT:
        yield f"outputs may be off by {near.relative:g} of each number and {near.absolute:g} besides"


def _varying(near: Tolerance, *ran: Mode | Process | None) -> Iterator[str]:
    """Which results no two runs of the original agree in."""
    varying = {one.output: one for mode in ran if mode for one in mode.varies}
    if varying:
        worst = max(varying.values(), key=lambda one: one.worst)
        count = f"{len(varying)} output{'s' if len(varying) > 1 else ''} of the original"
        how = "from run to run, as some kernels add in any order"
        if near == IN_PIECES:
            how = "where inputs differ in their last digits, as what is left there is rounding"
        yield (
            f"{count} var{'y' if len(varying) > 1 else 'ies'} {how}: "
            f"worst is {worst.output}, by {worst.worst:.2g}. The rewritten model's may be {FACTOR:g} times as far off."
        )


def _outputs(mode: Mode | Process, same: str) -> str:
    return (
        "not run" if mode.cut else "failed" if mode.failed else f"{len(mode.differs)} differ" if mode.differs else same
    )


def _row(
    name: str, mode: Mode | Process, before: int | None, after: int | None, said: int | None, same: str
) -> list[str]:
    change = show_change(before, after) if before and after else ""
    shown = ["" if size is None else show_bytes(size) for size in (before, after, said)]
    return [name, *shown[:2], change, shown[2], _outputs(mode, same)]
