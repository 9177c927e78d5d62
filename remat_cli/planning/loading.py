"""From what the user named on the command line to a Subject: a model with its costs, or a bare problem.

Invariant: a cost file is used only for the very model it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from profiles.costs import BadCosts, Costs, load
from remat_cli.errors import BadInput, Usage
from remat_cli.formats import planfile
from remat_cli.formats.files import sha256
from remat_cli.formats.planfile import PlanFile
from remat_cli.planning.subject import Subject


def load_subject(model: Path | None, costs: Path | None, dims: Mapping[str, int]) -> Subject:
    """The subject at `model`; without one, the model that the only cost file here was made for."""
    if model is None:
        costs = costs or _only_costs(Path())
        model = model_of(costs)
    if not model.is_file():
        raise BadInput(f"{model}: there is no such file")
    if model.suffix == ".json":
        return _bare(model, costs, dims)
    return _model(model, costs, dims)


def _model(model: Path, costs: Path | None, dims: Mapping[str, int]) -> Subject:
    from profiles.kernels import THREADS
    from profiles.roofline import device
    from profiles.survey import estimated
    from remat_cli.ingest import ingest
    from remat_cli.model.problem_of import problem_of, rewritten
    from remat_cli.model.signatures import ops_of

    costs = costs or _beside(model)
    found = read_costs(costs, dims) if costs else None
    if found and not dims:
        dims = found.dims
    graph = ingest(model, dims)
    if found and costs:
        if found.sha256 != graph.sha256:
            raise BadInput(f"{costs} was made for another model than {model}; run `remat profile {model}` again")
        table = found.table()
        missing = [op.name for op in graph.ops if op.name not in table]
        if missing:
            raise BadInput(f"{costs} says nothing of op '{missing[0]}'; run `remat profile {model}` again")
        notes: tuple[str, ...] = ()
        launch, threads = found.launch, found.threads or THREADS
    else:
        threads = THREADS
        launch = device("cpu").launch_ns
        table = {name: (cost.ns, cost.workspace) for name, cost in estimated(ops_of(graph), "cpu").items()}
        notes = ("the costs are estimates for a CPU; `remat profile` measures them",)
    named = problem_of(graph, table)
    digest = sha256(costs) if costs else None
    return Subject(
        model,
        graph.sha256,
        rewritten(named.problem),
        named.nodes,
        named.values,
        graph,
        graph.dims,
        costs,
        digest,
        notes,
        threads,
        launch,
    )


def _bare(path: Path, costs: Path | None, dims: Mapping[str, int]) -> Subject:
    from remat_cli.formats.problemfile import read

    if costs or dims:
        raise Usage(f"{path} is a bare problem: it has its costs and sizes in it; leave out --costs and --dim")
    named = read(path)
    return Subject(path, sha256(path), named.problem, named.nodes, named.values)


def _only_costs(folder: Path) -> Path:
    found = sorted(folder.glob("*.costs.yaml"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise Usage("name a model, or run `remat profile MODEL.onnx` first: there is no *.costs.yaml here")
    raise Usage(f"name a model: there are several cost files here: {', '.join(path.name for path in found)}")


def _beside(model: Path) -> Path | None:
    path = model.with_name(model.name.removesuffix(".onnx") + ".costs.yaml")
    return path if path.is_file() else None


def read_costs(path: Path, dims: Mapping[str, int] | None = None) -> Costs:
    """The cost file, at these dimensions, or a BadInput that says what is wrong with it."""
    try:
        return load(path).for_dims(dims or {})
    except BadCosts as error:
        raise BadInput(str(error)) from error


def model_of(costs: Path) -> Path:
    """The model a cost file was made for, wherever the file stands now."""
    named = Path(read_costs(costs).model)
    return named if named.is_absolute() else costs.parent / named


def load_planned(path: Path) -> tuple[PlanFile, Subject]:
    """A plan and the subject it schedules, both as they were when it was made; what has changed since is refused."""
    plan = planfile.read(path)
    planfile.check_source(plan.model, "model")
    if plan.costs:
        planfile.check_source(plan.costs, "cost file")
    return plan, load_subject(plan.model.path, plan.costs.path if plan.costs else None, plan.dims)
