"""`*.plan.json`: a schedule, the question it answers and its promised figures, in the names of its model.

Invariant: equal plans give equal bytes; what is read back is complete and of the right types; paths inside the file are
relative to its folder, so that a folder can be moved as a whole. A plan loads without the solver that made it. What the
records declare is what is checked; what they have by default is not written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from remat_cli.errors import BadInput
from remat_cli.formats.declared import Between, Undeclared, declared
from remat_cli.formats.files import sha256, write_whole
from remat_cli.formats.program import fault, number_program
from remat_cli.limits import TEXT_BYTES
from remat_cli.model.proved import PlanProof, Promise, overhead_of, time_of
from remat_cli.model.sessions import Session, kind_of
from remat_cli.reading import parse_json, read_object, read_whole
from solvers.placement.placed import Placement
from solvers.plan import Plan
from solvers.problem import Problem, Status
from solvers.simulate import IllegalPlan, Outcome, simulate

MOST_PIECES = 1 << 16
MOST_COST = 1 << 60  # nanoseconds, or bytes

Cost = Annotated[int, Between(0, MOST_COST)]
FORMAT = "remat-plan/1"
NOT_FIGURES = ("format", "allocator")  # the second in files of older versions
FOUND = tuple(status.value for status in Status if status.found)
FILE, AS_RUN = "file", "as run"  # the ops of the schedule: the model's own, or the kernels that a default session runs


@dataclass(frozen=True, slots=True)
class RecordedPlaces(Placement):
    """Where values lie. Of places that runs showed: `threads` of those runs; `layout`: how many channels lie together
    in the model's layouts, where it has any; `weights`: the bytes of weights that stay in memory, where runs let go of
    others."""

    threads: int | None = None
    layout: int | None = None
    weights: int | None = None


def places_of(placement: Placement, **seen: int | None) -> RecordedPlaces:
    """The places, with what was seen of the runs that showed them."""
    return RecordedPlaces(placement.block, placement.bound, placement.allocations, **seen)


@dataclass(frozen=True, slots=True)
class CutRegion:
    """Ops that are cut together: in how many pieces, and each in which way, by name."""

    pieces: Annotated[int, Between(2, MOST_PIECES)]
    ways: dict[str, str]


@dataclass(frozen=True, slots=True)
class CutOps:
    """How a graph in pieces is made of the model's. `sha256`: of that graph; `exact`: whether its results are the same
    bits. `costs`: measured time and workspace of ops that only it has."""

    exact: bool
    sha256: str
    regions: tuple[CutRegion, ...]
    costs: dict[str, tuple[Cost, Cost]] = field(default_factory=dict)


def as_said(part: RecordedPlaces | CutOps) -> dict[str, Any]:
    """The part as its file has it."""
    said = asdict(part)
    return {one.name: said[one.name] for one in fields(part) if said[one.name] not in (None, {})}


@dataclass(frozen=True, slots=True)
class Source:
    """A file that the plan depends on; its reader can open `path`."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Searched:
    """The limits of the search that found the plan. `work`: in moves, where work was limited."""

    seconds: float
    gap: float
    work: int | None = None


@dataclass(frozen=True, slots=True)
class PlanFile:
    """Bytes and nanoseconds throughout. `model` is the ONNX file or the problem file that was scheduled."""

    model: Source
    costs: Source | None
    dims: dict[str, Annotated[int, Between(1)]]
    budget: int
    method: str
    seed: int
    limits: Searched
    status: str
    bound: float | None  # the cost that no schedule of the class named in `notes` goes below
    peak: int
    cost: int
    baseline_peak: int
    baseline_cost: int
    resident: int
    promises: Promise
    program: tuple[dict[str, Any], ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    session: str = "strict"
    placement: RecordedPlaces | None = field(default=None, repr=False)
    graph: str = FILE
    in_place: dict[str, str] = field(default_factory=dict)  # outputs that are written over these inputs
    asked: dict[str, Any] = field(default_factory=dict)  # the parts of the question that differ from the defaults
    pieces: CutOps | None = field(default=None, repr=False)  # the ops that were cut before planning
    bound_any_order: float | None = None  # the cost that no schedule goes below; older files do not say it

    @property
    def kind(self) -> Session:
        """The session that the plan is for."""
        kind = kind_of(self.session)
        assert kind is not None
        return kind

    @property
    def time(self) -> int:
        return time_of(self.promises, self.cost)

    @property
    def proved(self) -> PlanProof:
        """What is proved of the cost."""
        return PlanProof(self.cost, self.bound, self.bound_any_order)

    @property
    def overhead(self) -> float:
        """The share of time that the plan adds."""
        return overhead_of(self.time, self.baseline_cost)


def describe(path: Path) -> Source:
    """A file by path and content, as a plan records it."""
    return Source(path, sha256(path))


def dump(plan: PlanFile, folder: Path) -> str:
    """The file's content, one statement a line; `folder` is where it will stand."""
    head = {"format": FORMAT, **{f.name: getattr(plan, f.name) for f in fields(plan) if f.name != "program"}}
    for name in ("in_place", "asked", "pieces"):
        if not head[name]:
            del head[name]
    for name in ("model", "costs"):
        source = head[name]
        head[name] = source and {"path": _relative(source.path, folder), "sha256": source.sha256}
    head["limits"], head["promises"] = asdict(plan.limits), asdict(plan.promises)
    head |= {name: as_said(part) for name, part in (("placement", plan.placement), ("pieces", plan.pieces)) if part}
    lines = [f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    statements = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in plan.program)
    return "{\n" + ",\n".join(lines) + ',\n "program": [\n' + statements + "\n ]\n}\n"


def write(plan: PlanFile, path: Path) -> None:
    write_whole(path, dump(plan, path.parent))


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def is_plan(path: Path) -> bool:
    """Whether to read the file as a plan: its name or its content says so, or it is neither a model nor a problem."""
    if path.suffix != ".json" or path.name.endswith(".plan.json"):
        return path.suffix != ".onnx"
    try:
        data = parse_json(read_whole(path, TEXT_BYTES))
    except ValueError:
        return True
    return isinstance(data, dict) and str(data.get("format", "")).startswith("remat-plan/")


def read(path: Path) -> PlanFile:
    """Load a plan and check its form; `replay` says whether it is legal."""
    return _plan(read_object(path, FORMAT, "a plan", "remat solve"), path)


def _plan(data: dict[str, Any], path: Path) -> PlanFile:
    _check_allocator(data, path)
    said = {name: value for name, value in data.items() if name not in NOT_FIGURES}
    try:
        plan: PlanFile = declared(PlanFile, said, closed=True, least=0, most=MOST_COST)
    except Undeclared as error:
        raise BadInput(f"{path} is no whole plan: {error}; run 'remat solve' again") from error
    if plan.status not in FOUND:
        raise BadInput(f"{path}: 'status' is {plan.status!r}, which is none of {', '.join(FOUND)}")
    if plan.graph not in (FILE, AS_RUN):
        raise BadInput(f"{path}: 'graph' is {plan.graph!r}, which is neither {FILE!r} nor {AS_RUN!r}")
    for place, entry in enumerate(plan.program):
        if wrong := fault(entry):
            raise BadInput(f"{path}: program[{place}]: {wrong}")
    return replace(
        plan,
        model=_beside(plan.model, path),
        costs=plan.costs and _beside(plan.costs, path),
        session=_session(plan.session, path).name,
    )


def _beside(source: Source, path: Path) -> Source:
    return replace(source, path=path.parent / source.path)


def _session(name: str, path: Path) -> Session:
    """The kind of session; a plan that names none is for the first kind."""
    kind = kind_of(name)
    if kind is None:
        raise BadInput(f"{path}: there is no session '{name}'")
    return kind


def _check_allocator(data: Mapping[str, Any], path: Path) -> None:
    """Files of older versions name one."""
    if data.get("allocator") == "arena":
        raise BadInput(f"{path}: the plan is for a capped arena, for which remat makes plans no more; solve again")


def check_source(source: Source, kind: str) -> None:
    """Refuse a file that is missing or has changed since it was scheduled."""
    try:
        now = sha256(source.path)
    except OSError as error:
        raise BadInput(
            f"cannot read the plan's {kind} {source.path}: {error.strerror}; the plan needs it as it was: bring it"
            " back, or run 'remat solve' again"
        ) from error
    if now != source.sha256:
        raise BadInput(f"the {kind} {source.path} has changed since the plan was made; run 'remat solve' again")


def replay(plan: PlanFile, problem: Problem, nodes: tuple[str, ...], values: tuple[str, ...]) -> tuple[Plan, Outcome]:
    """The plan in the problem's numbers, with `simulate`'s cost and peak."""
    numbers = number_program(plan.program, nodes, values)
    try:
        return numbers, simulate(problem, numbers)
    except IllegalPlan as error:
        raise BadInput(f"the plan of {plan.model.path} cannot be run: {error}") from error
