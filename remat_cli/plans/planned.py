"""A plan with the model it is for: the Python API's `solve` returns it; `emit`, `verify` and a session take it.

Invariant: the figures are those of the plan file that `save` writes. Once the plan is saved, all that the plan file
refers to is in files.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import NoReturn

from profiles.costfile import dump
from remat_cli.errors import BadInput, RematWarning, Usage
from remat_cli.formats import planfile
from remat_cli.formats.files import stem_of, write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.formats.planfile import PlanFile, describe
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.in_pieces import scheduled_by
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans import figures
from remat_cli.plans.keeping import put
from remat_cli.plans.notebook import memory_over_time, shown
from remat_cli.plans.timeline import timeline
from remat_cli.units import show_bytes, show_share
from solvers.notes import Note
from solvers.plan import Plan
from solvers.simulate import Outcome


@dataclass(frozen=True, slots=True, repr=False)
class Planned:
    """Bytes and nanoseconds. `path`: the file that the plan was read from, if it was."""

    recorded: PlanFile
    subject: Subject
    path: Path | None = None

    @property
    def status(self) -> str:
        return self.recorded.status

    @property
    def budget(self) -> int:
        return self.recorded.budget

    @property
    def peak(self) -> int:
        return self.recorded.peak

    @property
    def cost(self) -> int:
        return self.recorded.cost

    @property
    def bound(self) -> float | None:
        """The cost that no schedule of the class named in `notes` can go below; None if nothing was proved."""
        return self.recorded.bound

    @property
    def bound_any_order(self) -> float | None:
        """The cost that no schedule can go below, in whatever order it first computes the ops."""
        return self.recorded.bound_any_order

    @property
    def overhead(self) -> float:
        """The overhead of recomputation and of the ops that rewriting adds, as far as those are known."""
        return self.recorded.overhead

    @property
    def gap(self) -> float | None:
        """How far from the least cost possible this may be, as a share of the bound."""
        return self.recorded.proved.gap

    @property
    def gap_any_order(self) -> float | None:
        """How far from the least cost of all plans this may be, in whatever order; None if nothing was proved."""
        return self.recorded.proved.gap_any_order

    @property
    def notes(self) -> tuple[str, ...]:
        return self.recorded.notes

    def __repr__(self) -> str:
        name, figures = self.subject.path.name, ", ".join(f"{what} {value}" for what, value in self._figures())
        return f"<plan of {name}: {figures}>"

    def _repr_html_(self) -> str:
        """For a notebook: the figures as a table, and memory over time."""
        before, after = (
            timeline(self.subject.problem, plan) for plan in (self.subject.as_it_is()[0], self.replayed()[0])
        )
        picture = memory_over_time(before, after, self.budget)
        return shown(f"plan of {self.subject.path.name}", self._figures(), picture=picture)

    def _figures(self) -> list[tuple[str, str]]:
        return [
            ("status", self.status),
            ("peak", show_bytes(self.peak)),
            ("budget", show_bytes(self.budget)),
            ("overhead", f"{self.overhead:+.2%}"),
            *([] if self.gap is None else [("gap", show_share(self.gap))]),
            ("method", self.recorded.method),
        ]

    def __deepcopy__(self, _: dict[int, object]) -> Planned:
        """Nothing of a plan changes."""
        return self

    def __reduce__(self) -> NoReturn:
        raise Usage("a plan is not pickled: plan.save(path) writes it, and remat.load_plan(path) reads it elsewhere")

    def replayed(self) -> tuple[Plan, Outcome]:
        """The plan in the problem's numbers, and what it costs and needs by `simulate`'s word."""
        return figures.replayed(self.recorded, self.subject)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `m.plan.json`. A model or costs that are in memory only are written beside it, as `m.onnx` and
        `m.costs.yaml`; where others stand there already, as `m.model.onnx` and `m.model.costs.yaml`.

        A better plan for the same question that stands there stays. A warning says so, and says what is replaced.
        """
        if not isinstance(path, str | os.PathLike):
            raise Usage(f"a plan's file is a path, not {type(path).__name__}")
        for said in sentences(self.saved(Path(path))):
            warnings.warn(said, RematWarning, stacklevel=2)

    def saved(self, path: Path) -> tuple[Note, ...]:
        """Write the files at this path. The result is the notes about what stood there."""
        destination = path
        inputs = [source.path for source in (self.recorded.model, self.recorded.costs) if source]
        check_place(destination, FileKind.PLAN, *inputs)
        for name in _free_names(stem_of(destination)):
            files = self._files(destination, name)
            if all(not path.exists() or path.read_bytes() == content for path, content in files.values()):
                break
        for path, content in files.values():
            if not path.exists():
                write_whole(path, content)
        recorded = self.recorded
        if "model" in files:
            recorded = replace(recorded, model=describe(files["model"][0]))
        if "costs" in files:
            recorded = replace(recorded, costs=describe(files["costs"][0]))
        return put(recorded, destination, self.subject).notes

    def _files(self, destination: Path, name: str) -> dict[str, tuple[Path, bytes]]:
        """What is in memory only, by its part of the plan, with where it goes under that name."""
        found, subject, model = dict[str, tuple[Path, bytes]](), self.subject, self.recorded.model.path
        if subject.content is not None:
            model = destination.with_name(f"{name}.onnx")
            found["model"] = model, subject.content
        if subject.given_costs is not None:
            where = os.path.relpath(model.resolve(), destination.resolve().parent)
            text = dump(replace(subject.given_costs, model=Path(where).as_posix()))
            found["costs"] = destination.with_name(f"{name}.costs.yaml"), text.encode()
        return found


def load_planned(path: Path) -> Planned:
    """A plan and the subject it schedules, both as they were when it was made; what has changed since is refused, and
    so are figures that are not the program's."""
    plan = planfile.read(path)
    planfile.check_source(plan.model, "model")
    if plan.costs:
        planfile.check_source(plan.costs, "cost file")
    costs, as_run = plan.costs.path if plan.costs else None, plan.graph == planfile.AS_RUN
    try:
        subject = load_subject(plan.model.path, costs, plan.dims, plan.kind, as_run, plan.in_place)
    except Usage as error:
        raise BadInput(f"{path} says what its model does not have: {error}") from error
    found = Planned(plan, scheduled_by(plan, subject), path)
    found.replayed()
    return found


def _free_names(stem: str) -> Iterator[str]:
    """Names for the model of a plan; nothing that stands in a folder is written over."""
    yield stem
    yield f"{stem}.model"
    yield from (f"{stem}.model{number}" for number in count(2))
