"""Builds a Subject from what the user names on the command line: a model with its costs, or a bare problem.

Invariant: a cost file is used only for the very model it was made for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import onnx

from profiles import costfile
from profiles.costs import BadCosts, Costs
from profiles.kernels import is_known
from remat_cli.errors import BadInput, Usage
from remat_cli.formats.planfile import Source, describe
from remat_cli.model.graph import Graph
from remat_cli.model.in_place import InPlace, divide_updates, hold_back, narrow
from remat_cli.model.problem_of import as_rewritten
from remat_cli.model.semantics import needs_training_build
from remat_cli.model.sessions import STRICT, Session
from remat_cli.model.signatures import is_light
from remat_cli.model.step_parts import parts_of
from remat_cli.notes.kinds import PlanNote
from remat_cli.onnx_graph.load import content_of
from remat_cli.onnx_graph.walk import has_subgraph
from remat_cli.planning.subjects.subject import Behaviour, Costed, Subject
from remat_cli.planning.targets.target import Target, View
from solvers.faults import sound
from solvers.notes import Note


def load_subject(
    model: Path | onnx.ModelProto | None,
    costs: Path | Costs | None,
    dims: Mapping[str, int],
    session: Session = STRICT,
    as_run: bool = True,
    in_place: InPlace = None,
) -> Subject:
    """The subject of a model and its costs, in files or in memory. Without a model, it is the one that the only cost
    file in this folder was made for.

    `session`: the kind of session that plans are for; it decides here, once, which ops share a kernel. `as_run`:
    whether the subject may be the graph that such a session runs, where that differs from the file's. `in_place`: the
    outputs that take the memory of inputs.
    """
    from remat_cli.ingest import ingest, ingest_content

    if model is None:
        where = costs if isinstance(costs, Path) else _only_costs(Path())
        model, costs = model_of(where), costs or where
    if isinstance(model, Path):
        if not model.is_file():
            raise BadInput(f"{model}: {_why_no_file(model)}")
        if model.suffix == ".json":
            return _bare(model, costs, dims)
        beside = costfile.beside(model)
        costs = costs or (beside if beside.is_file() else None)
    found = read_costs(costs, dims) if isinstance(costs, Path) else costs
    if found and dims.items() <= found.dims.items():
        dims = found.dims
    content = None if isinstance(model, Path) else content_of(model)
    graph = ingest(model, dims) if content is None else ingest_content(content, dims)
    path = costs if isinstance(costs, Path) else None
    if found:
        _check_made_for(found, graph, path)
    subject = subject_of(graph, found, describe(path) if path else None, session, as_run, in_place)
    return subject if path is costs and content is None else subject.given_as(content, None if path else found)


def _why_no_file(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    return f"it is a link to {os.readlink(path)}, where no file is" if path.is_symlink() else "there is no such file"


def is_model(path: Path) -> bool:
    """Whether the name is that of a model, a problem or a chain, and not that of a plan."""
    return path.name.endswith((".onnx", ".problem.json", ".chain.json", ".joint.json"))


def _check_made_for(costs: Costs, graph: Graph, path: Path | None) -> None:
    what, again = path or "the costs", f"run `remat profile {graph.path}` again" if path else "profile it again"
    if costs.sha256 != graph.sha256:
        raise BadInput(f"{what} was made for another model than {graph.path}; {again}")
    missing = [op.name for op in graph.ops if op.name not in costs.ops]
    if missing:
        raise BadInput(f"{what} says nothing of op '{missing[0]}'; {again}")


def subject_of(
    graph: Graph,
    costs: Costs | None,
    where: Source | None,
    session: Session = STRICT,
    as_run: bool = True,
    in_place: InPlace = None,
) -> Subject:
    """The subject of a graph; `where` its costs are kept, if in a file. Without costs, they are estimates."""

    from remat_cli.planning.kinds import target_of

    target = target_of(session)

    @cache
    def by_file() -> Subject:
        return subject_of(graph, costs, where, session, False, in_place)

    def find_updates(graph: Graph, costs: Costs | None) -> tuple[Mapping[str, str], Callable[..., Subject]]:
        """The updates that may be in place, and what makes the subject with some of them."""
        view = target.view(graph, as_run, costs)
        settled = hold_back(view.graph, in_place)
        pairs, left = divide_updates(settled, in_place, target.why_apart(view, costs))
        shared, own = Costed(costs), by_file if view.optimized and target.plans_file else None
        notes = tuple(_notes(replace(view, graph=settled), costs, target, left))

        def make(pairs: Mapping[str, str]) -> Subject:
            """What is found once holds for one order of the ops."""
            costed = shared if settled is view.graph or not pairs else Costed(costs)
            made = replace(view, graph=replace(settled, in_place=pairs)) if pairs else view
            told = (*notes, *_of_updates(graph, in_place, pairs))
            return replace(_subject_of(target, costed, where, own, made, told), recast=recast, costed=costs)

        return pairs, make

    def recast(other: Graph, paid: Costs | None) -> Subject:
        pairs, make = find_updates(other, paid)
        return make(pairs)

    pairs, make = find_updates(graph, costs)
    apart = make({})
    return replace(make(pairs), apart=apart) if pairs else apart


def _subject_of(
    target: Target,
    costed: Costed,
    where: Source | None,
    by_file: Callable[[], Subject] | None,
    view: View,
    notes: tuple[Note, ...],
) -> Subject:
    from profiles.kernels import THREADS
    from profiles.roofline import device

    graph, costs = view.graph, costed.costs
    if costs:
        launch, threads = costs.launch, costs.threads or THREADS
    else:
        launch, threads = device("cpu").launch_ns, THREADS
    named = costed.problem(graph, view.optimized)
    named = target.named(view, replace(named, problem=as_rewritten(named.problem), rewritten=True))
    sound(named.problem, f"the problem of {graph.path}")
    return Subject(
        source=Source(graph.path, graph.sha256),
        named=named,
        graph=graph,
        dims=graph.dims,
        costs=where,
        notes=notes,
        measured=costs is not None and costs.measured,
        threads=threads,
        launch=launch,
        probe=costs.probe if costs else 0,
        behaviour=Behaviour(
            view.kernels,
            view.optimized,
            by_file,
            target.unlike(costs.whole) if costs is not None else None,
        ),
    )


def _notes(view: View, costs: Costs | None, target: Target, left: Mapping[str, str]) -> Iterator[Note]:
    """All that users are told of a graph, the same whatever is in place in it."""
    yield from _of_costs(view.graph, costs, target, view.optimized)
    yield from _missing_checks(view.graph, costs, target.unchecked(view))
    yield from _held_twice(view.graph, left)


def _of_costs(graph: Graph, costs: Costs | None, target: Target, written_out: bool) -> Iterator[Note]:
    if costs is None:
        yield Note(PlanNote.ESTIMATED_AND_FORETOLD if target.online else PlanNote.ESTIMATED_AND_TRACED)
    elif not costs.measured:
        yield Note(PlanNote.FROM_PAPER_AND_FORETOLD if target.online else PlanNote.FROM_PAPER_AND_TRACED)
    as_it_runs = written_out and not target.plans_file
    if costs is None and as_it_runs:
        yield Note(PlanNote.WRITTEN_OUT, ("values of 16 bits are computed in float32",))
    elif costs is None and not written_out and (why := narrow(graph)):
        yield Note(PlanNote.UNLIKE, (why,))
    yield from _unknown_work(graph, costs)
    if costs is not None and (waited := costs.whole.waited) is not None:
        yield Note(PlanNote.MEASURED_WHILE_BUSY, (waited,))
    if costs is not None and (seen := costs.whole.seen):
        yield Note(PlanNote.SEEN_IN_A_RUN, (seen,))
    if costs is not None and (unlike := costs.whole.unlike):
        yield Note(PlanNote.WRITTEN_OUT if as_it_runs else PlanNote.UNLIKE, (unlike,))
    if costs is not None and (sizes := costs.whole.by_functions):
        yield Note(PlanNote.BY_FUNCTIONS, sizes)


def _unknown_work(graph: Graph, costs: Costs | None) -> Iterator[Note]:
    """Ops that may work in anything, of which no estimate knows: on a GPU of any that was not measured. Those of
    training builds do not run here at all."""
    asked = [op for op in graph.ops if not needs_training_build(op.node)]
    on_gpu = costs is not None and costs.kind == "cuda"
    if costs is not None and on_gpu:
        estimated = costs.estimated
        asked = [op for op in asked if op.name in estimated and not is_light(graph, op)]
    elif costs is not None and costs.measured:
        return
    holders = [op for op in asked if has_subgraph(op.node)]
    kernels = [op for op in asked if not has_subgraph(op.node) and (on_gpu or not is_known(op.domain, op.op_type))]
    for kind, ops in ((PlanNote.SUBGRAPHS_UNKNOWN, holders), (PlanNote.KERNELS_UNKNOWN, kernels)):
        if ops:
            yield Note(kind, (ops[0].op_type, ops[0].name, _and_more(len(ops))))


def _missing_checks(graph: Graph, costs: Costs | None, unchecked: bool) -> Iterator[Note]:
    """Checks that other models get and this one does not."""
    if any(needs_training_build(op.node) for op in graph.ops):
        yield Note(PlanNote.NEEDS_TRAINING_BUILD)
    elif costs is not None and (why := costs.whole.not_run):
        yield Note(PlanNote.NOT_RUN, (why,))
    elif unchecked:
        yield Note(PlanNote.KERNELS_UNCHECKED)


def _held_twice(graph: Graph, left: Mapping[str, str]) -> Iterator[Note]:
    """What of the state is held beside its old values."""
    if left:
        largest = max(left, key=lambda name: graph.values[name].bytes)
        size = sum(graph.values[name].bytes for name in left)
        yield Note(PlanNote.HELD_TWICE, (size, largest, left[largest]))


def _of_updates(graph: Graph, asked: InPlace, pairs: Mapping[str, str]) -> Iterator[Note]:
    """What is written over inputs, or could be, of a step that other programs made: its users do not expect it."""
    if parts_of(graph.model) is not None:
        return
    if pairs:
        output, old = next(iter(pairs.items()))
        yield Note(PlanNote.WRITES_OVER, (old, _and_more(len(pairs)), output))
    elif asked is None and (found := divide_updates(graph, True, narrow(graph))[0]):
        spared = sum(graph.values[name].bytes for name in found)
        yield Note(PlanNote.MAY_WRITE_OVER, (next(iter(found)), _and_more(len(found)), spared))


def _and_more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""


def _bare(path: Path, costs: Path | Costs | None, dims: Mapping[str, int]) -> Subject:
    from remat_cli.formats.problemfile import read

    if costs or dims:
        raise Usage(f"{path} is a bare problem: it has its costs and sizes in it; leave out --costs and --dim")
    return Subject(source=describe(path), named=read(path))


def _only_costs(folder: Path) -> Path:
    found = sorted(folder.glob("*.costs.yaml"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise Usage("name a model, or run `remat profile MODEL.onnx` first: there is no *.costs.yaml here")
    raise Usage(f"name a model: there are several cost files here: {', '.join(path.name for path in found)}")


def read_costs(path: Path, dims: Mapping[str, int] | None = None) -> Costs:
    """The cost file, at these dimensions, or a BadInput that says what is wrong with it."""
    try:
        return costfile.load(path).for_dims(dims or {})
    except BadCosts as error:
        raise BadInput(str(error)) from error


def model_of(costs: Path) -> Path:
    """The model a cost file was made for, wherever the file stands now."""
    named = Path(read_costs(costs).model)
    return named if named.is_absolute() else costs.parent / named
