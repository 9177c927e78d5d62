"""What `shrink` does once its flags are read, and says: a row for each way as soon as it was tried, what is
recommended, and the same as an object.

Invariant: gains are held against the leanest way that needs no tool, mostly two options of onnxruntime, and the words
say which.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from remat_cli.actions.interrupts import Deadline, Halted, listening
from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.actions.shrinking.shrink import Shrinking, Shrunk, check_places, folder_for
from remat_cli.actions.shrinking.ways import AS_IT_IS, CLEARLY, STOCK, Outputs, Recommended, TriedWay, is_good
from remat_cli.commands import options
from remat_cli.errors import NoPlan, RematError
from remat_cli.formats.files import stem_of
from remat_cli.saying.progress import Line
from remat_cli.units import show_bytes, show_share, show_time

WIDTHS = 22, 9, 9, 18, 13
HEAD = ("way", "memory", "after", "time", "outputs", "what to set")


def shrink(model: Path, given: Mapping[str, Any]) -> None:
    """Try every way, say what came of each, and put the best one's files in their place."""
    asked = ShrinkQuestion(
        feeds=given["feeds"],
        dims=dict(given["dims"]),
        also=given["also"],
        slower=given["max_slower"],
        target=given["target"],
        seed=given["seed"],
    )
    output = given["output"] or model.with_name(f"{stem_of(model)}.small.onnx")
    check_places(output, asked.target, model)
    clock = options.clock_of(given)
    with listening() as interrupts, folder_for(output) as folder, Line(given["quiet"] or given["as_json"]) as line:
        clock = clock.unless(interrupts)
        table = _Table(line, given["quiet"] or given["as_json"])
        memory = options.memory_of(clock, given)
        work = Shrinking(model, output, folder, asked, clock, table.row, line.say, memory)
        with Deadline(clock, lambda halted: _last_words(work, given, halted)) as deadline:
            work.run()
            deadline.met()
            line.say("")
            if work.found.choice is None:
                raise NoPlan("time was up before the model had run; give more with --time-limit")
            deadline.answer(lambda halted: _tell(work.finish(), given, halted))


class _Table:
    """Rows as they come."""

    def __init__(self, line: Line, quiet: bool) -> None:
        self.line, self.quiet = line, quiet
        self.first: TriedWay | None = None

    def row(self, tried: TriedWay) -> None:
        if self.quiet:
            return
        self.line.say("")
        if self.first is None:
            click.echo(head())
        if self.first is None or tried.way.sets == self.first.way.sets:  # the model as it is, at other sizes too
            self.first = tried
        click.echo(row(tried, self.first))


def _last_words(work: Shrinking, given: Mapping[str, Any], halted: bool) -> RematError | None:
    """Time is up, or the user has had enough: what there is by then stays."""
    if work.found.choice is None:
        shutil.rmtree(work.folder, ignore_errors=True)
        return options.tell_no_plan(halted, work.clock, {} if given["as_json"] else None)
    work.found.stopped = True
    found = work.finish()
    shutil.rmtree(work.folder, ignore_errors=True)
    return _tell(found, given, halted)


def _tell(found: Shrunk, given: Mapping[str, Any], halted: bool) -> Halted | None:
    """Say what was found; what to end with, if somebody ended it."""
    error = Halted() if halted else None
    if given["as_json"]:
        options.say_object(as_object(found), error)
    elif not given["quiet"]:
        click.echo("\n".join(advice(found)))
    return error


def head() -> str:
    return _row(HEAD)


def row(tried: TriedWay, first: TriedWay) -> str:
    """A line of the table. `first`: the model as it is."""
    if not tried.ran:
        return _row((tried.way.name, "-", "-", "-", "-", f"not measured: {tried.failed}"))
    time = show_time(tried.ns)
    if tried is not first:
        time += f" ({tried.ns / max(1, first.ns) - 1:+.0%})"
    outputs = "-" if tried is first else _outputs(tried.outputs)
    return _row((tried.way.name, show_bytes(tried.peak), show_bytes(tried.held), time, outputs, tried.way.sets))


def _row(cells: tuple[str, ...]) -> str:
    first, *middle, last = cells
    padded = [cell.rjust(width) for cell, width in zip(middle, WIDTHS[1:], strict=True)]
    return "  ".join([first.ljust(WIDTHS[0]), *padded, last])


def _outputs(outputs: Outputs) -> str:
    if outputs.same:
        return "the same bits"
    own = "" if outputs.own is None else f", own {outputs.own:.0e}"
    return f"{'within' if outputs.near else 'off by'} {outputs.off:.0e}{own}"


def advice(found: Shrunk) -> list[str]:
    """What is recommended, in lines."""
    choice = found.choice
    if choice is None:
        return []
    said = [_recommended(choice, found)]
    said += [f"note: {why}" for why in _notes(choice, found)]
    if found.files:
        said.append(f"wrote {', '.join(map(str, found.files))}")
    return said


def _recommended(choice: Recommended, found: Shrunk) -> str:
    best, against = choice.best, choice.against
    if best.way == AS_IT_IS:
        return "recommended: the model as it is; nothing that was tried holds clearly less in the time allowed"
    if not best.way.written:
        than = f"{show_bytes(best.peak)} where the model as it is holds {show_bytes(found.tried[0].peak)}"
        return f"recommended: two options, no new file: {best.way.sets}: {than}"
    other = "the model as it is" if against.way == AS_IT_IS else f"the model with {against.way.name}"
    than = f"{show_bytes(best.peak)} where {other} holds {show_bytes(against.peak)}"
    return f"recommended: {best.way.name}: {than} (-{show_share(choice.saved)}); open {best.way.sets}"


def _notes(choice: Recommended, found: Shrunk) -> list[str]:
    first, said = found.tried[0], list[str]()
    leaner = [one for one in found.tried if one.ran and one.peak < choice.best.peak]
    for one in leaner:
        if not is_good(one, first, found.slower):
            why = f"takes {one.ns / max(1, first.ns) - 1:+.0%} time" if one.outputs.near else "has other outputs"
            said.append(f"{one.way.name} holds {show_bytes(one.peak)}, and {why}; --max-slower says what may be spent")
    plans = [one for one in found.tried if one.way.written and one.ran]
    if found.target == STOCK and plans and all(one.peak >= CLEARLY * choice.without.peak for one in plans):
        said.append("a stock session keeps nothing of what plans gain; --for python and --for c do")
    if found.stopped:
        said.append("time was up before all ways were tried; give more with --time-limit")
    if found.refused:
        said.append(f"no plan was made: {found.refused}")
    if found.seen:
        said.append(found.seen)
    return said


def as_object(found: Shrunk) -> dict[str, Any]:
    choice = found.choice
    rows = [_object(one) for one in found.tried]
    best = None
    if choice is not None:
        best = {
            "way": choice.best.way.name,
            "set": choice.best.way.sets,
            "against": choice.against.way.name,
            "saved": choice.saved,
            "files": [str(file) for file in found.files],
        }
    notes = [] if choice is None else _notes(choice, found)
    others = [_object(one) for one in found.others]
    return {
        "for": found.target,
        "others": others,
        "rows": rows,
        "recommended": best,
        "stopped": found.stopped,
        "notes": notes,
    }


def _object(one: TriedWay) -> dict[str, Any]:
    return {
        "way": one.way.name,
        "memory": one.peak if one.ran else None,
        "loading": one.loading if one.ran else None,
        "after": one.held if one.ran else None,
        "ns": one.ns if one.ran else None,
        "outputs": ("same" if one.outputs.same else "near" if one.outputs.near else "other") if one.ran else None,
        "off": one.outputs.off if one.ran else None,
        "own": one.outputs.own if one.ran else None,
        "set": one.way.sets,
        "failed": one.failed or None,
    }
