"""The Python API: what a program says, turned into what the actions take. `remat_cli` itself brings it, lazily.

Invariant: the same questions, errors and answers as the command's; nothing is printed, and nothing written but what is
given a name.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from profiles.costs import Costs
from profiles.survey import SurveyProgress
from remat_cli.actions import certifying, emitting, piecing, profiling, solving, sweeping, verifying
from remat_cli.actions import largest as sizing
from remat_cli.actions.certifying import Proved
from remat_cli.actions.differentiating import differentiate, notes_of
from remat_cli.actions.largest import BASELINES
from remat_cli.actions.recipes import recipe_of
from remat_cli.actions.scaling import SizedStep, scaled
from remat_cli.actions.verifying import TIMEOUT, Trial, Verified
from remat_cli.checking.compare import Tolerance
from remat_cli.errors import RematWarning, Usage
from remat_cli.formats import certificatefile
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.prepare import Binding
from remat_cli.gradient.training import Options
from remat_cli.ingest import ingest, ingest_content
from remat_cli.model.quantities import Budget, parse_budget, parse_budgets, parse_bytes, parse_seconds
from remat_cli.model.sessions import OWN, STRICT
from remat_cli.notes.kinds import ROUTINE
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import content_of, given_subject, is_model, load_planned
from remat_cli.planning.plans import record
from remat_cli.planning.plans.planned import Planned
from remat_cli.planning.plans.points import Curve
from remat_cli.planning.plans.sizes import Largest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.time_plan import PROVING_SHARE
from remat_cli.results.memory import Memory
from remat_cli.results.store import Store, folder
from remat_cli.runtime.in_place import in_place
from remat_cli.runtime.session import by_default_of, placement_in, planned_of, session_of
from solvers.clock import Clock, limited
from solvers.problem import Limits, Progress
from solvers.registry import DEFAULT

CPU = ("CPUExecutionProvider",)
File: TypeAlias = str | os.PathLike[str]
Model: TypeAlias = File | onnx.ModelProto
Plan: TypeAlias = File | Planned


def grad(
    model: Model,
    *,
    loss: str | None = None,
    logits: str | None = None,
    class_axis: int | None = None,
    wrt: Sequence[str] = (),
    params: Iterable[str] | Any = (),
    ties: Iterable[tuple[str, str]] = (),
    as_exported: bool = False,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    optimizer: str | Any = "none",
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    betas: tuple[float, float] | None = None,
    eps: float | None = None,
    momentum: float | None = None,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    clip: float | None = None,
    train: bool = False,
    freeze_bn: bool = False,
    precision: str = "float32",
) -> onnx.ModelProto:
    """The training graph of a forward model, as `remat grad` makes it.

    `params`: the PyTorch module itself, of which all is trained that requires a gradient, or names of what is trained,
    as in `dict(module.named_parameters())`; `ties`: pairs of names that are one parameter; `as_exported`: whatever an
    exporter did, train what stands in the file; `train`: every Dropout and BatchNormalization, whatever mode the file
    has it in; `precision`: products in `float16` or `bfloat16`, the rest in float32.

    `optimizer`: "sgd", "momentum", "adam" or "adamw" with `learning_rate` (by default 0.01, and an input of the step),
    `weight_decay`, `betas`, `eps` and `momentum`; `groups`: other settings by a pattern of names, as
    {"*.bias": {"weight_decay": 0}}; `clip`: the norm that all gradients together are held to. Or a torch.optim object
    with all of these but `clip`, whose groups are named by `params=module`.
    """
    settings = {"learning_rate": learning_rate, "weight_decay": weight_decay, "betas": betas, "eps": eps}
    recipe = recipe_of(optimizer, {**settings, "momentum": momentum}, groups, clip, params)
    options = Options(
        loss=loss,
        logits=logits,
        class_axis=class_axis,
        choice=Choice(tuple(wrt), ties=tuple(ties), as_exported=as_exported, **_trained(params, optimizer)),
        binding=Binding(dict(shapes or {}), batch, dict(dims or {})),
        recipe=recipe,
        freeze_bn=freeze_bn,
        train=train,
        precision=precision,
    )
    training = differentiate(_model(model), options)
    _warn(notes_of(training))
    return training


def _trained(params: Any, optimizer: Any) -> dict[str, Any]:
    """What is trained, as listed; of a module each parameter that requires a gradient, by all its names, and that the
    optimizer has, if it is one of PyTorch's."""
    held = {id(value) for group in getattr(optimizer, "param_groups", ()) for value in group["params"]}
    if not hasattr(params, "named_parameters"):
        return {"params": tuple(params)}
    names: dict[int, list[str]] = {}
    for name, value in params.named_parameters(remove_duplicate=False):
        if value.requires_grad and (not held or id(value) in held):
            names.setdefault(id(value), []).append(name)
    if not names:
        raise Usage("no parameter of the module requires a gradient, or the optimizer has none of them")
    return {"params": [name for group in names.values() for name in group], "groups": list(names.values())}


def profile(
    model: Model,
    *,
    device: str = "auto",
    estimate: str | None = None,
    threads: int | None = None,
    batches: Iterable[int] = (),
    batch_dim: str | None = None,
    dims: Mapping[str, int] | None = None,
    time_limit: float | str = 45.0,
    strict: bool = False,
    session: str = "strict",
    cache: bool = True,
    whole: bool = True,
    report: Callable[[SurveyProgress], None] | None = None,
) -> Costs:
    """What each op costs: measured here, or on paper with `estimate`; `report` hears which op is being timed.

    `session`: with "default", what kernels cost that only default sessions have is measured too, not estimated.
    """
    asked = profiling.ProfileQuestion(
        session=solving.kind_named(session, None).name,
        device=device,
        estimate=estimate,
        threads=threads,
        batches=tuple(batches) or None,
        batch_dim=batch_dim,
        strict=strict,
        cached=cache,
        whole=whole,
        seconds=_seconds(time_limit),
        dims=dict(dims or {}),
    )
    found = profiling.profile(_model(model), asked, report or _nobody)
    _warn(sentences(found.notes))
    return found.costs


def in_pieces(
    model: Model, *, largest_value: int | str, exact: bool = False, dims: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """The model with its ops in pieces, so that no value that an op makes is larger than that: bytes, or "64MB".

    The same results but for the last bits: sums may be in pieces too. `exact` cuts only where pieces gave the same bits
    when they were tried. Raises BadInput where an op that is in the way cannot be cut.
    """
    try:
        most = parse_bytes(str(largest_value))
    except ValueError as error:
        raise Usage(str(error)) from error
    given = _model(model)
    graph = ingest(given, dims or {}) if isinstance(given, Path) else ingest_content(content_of(given), dims or {})
    return piecing.narrowed(graph, most, exact).made.graph.model


def solve(
    model: Model,
    *,
    budget: int | str | None = None,
    method: str = DEFAULT,
    session: str = "strict",
    allocator: str | None = None,
    costs: File | Costs | None = None,
    minimize: str = "cost",
    max_overhead: float | None = None,
    reorder: bool | None = None,
    known: Sequence[Plan] = (),
    dims: Mapping[str, int] | None = None,
    in_place: Mapping[str, str] | bool = True,
    time_limit: float | str | None = None,
    work_limit: int | None = None,
    gap: float = 0.001,
    seed: int = 0,
    cache: bool = True,
    certificate: File | None = None,
    report: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Planned:
    """A plan within `budget`: bytes, "16GB" or "70%". `options`: the method's own; `report` hears of better plans.

    `time_limit`: in seconds, by default 60; `work_limit`: in moves of the search, the same on every machine, by default
    instead of a time. `cache`: what was found before is not looked for again, and what is found is kept. `certificate`:
    where to write what proves the bounds, for `check`; it takes a part of the time. `in_place`: outputs that are
    written over inputs, as {"weight": "weight_new"}; True: those of a training step, and what is found; False: none.

    Raises Infeasible where it is proved that there is none, NoPlan where none was found.
    """
    question = solving.Question(
        budget=_budget(budget),
        method=method,
        minimize=minimize,
        max_overhead=max_overhead,
        known=tuple(_plan(plan).recorded for plan in known),
        reorder=reorder,
        options=options,
        session=solving.kind_named(session, allocator),
    )
    question.check()
    clock = limited(None if time_limit is None else _seconds(time_limit), work_limit)
    given = costs if isinstance(costs, Costs | None) else Path(costs)
    pairs = None if in_place is True else {new: old for old, new in in_place.items()} if in_place else {}
    subject = given_subject(_model(model), given, dict(dims or {}), question.session, pairs)
    return _planned(subject, question, Limits(clock, gap, seed, report or _nobody), cache, certificate)


def _planned(
    subject: Subject, question: solving.Question, limits: Limits, cache: bool, certificate: File | None
) -> Planned:
    memory = Memory(store=Store(folder()), seconds=limits.clock.seconds) if cache else None
    searching = limits if certificate is None else limits.share(1 - PROVING_SHARE)
    found = replace(solving.ask(subject, question, searching, memory), limits=limits)
    if certificate is not None:
        made, _ = certifying.certified(subject, found, question.session, limits.clock)
        certificatefile.write(made, Path(certificate))
    solving.found_or_raised(found)
    _warn(sentences(note for note in found.notes if note.kind not in ROUTINE), depth=4)
    return Planned(record.plan_file(found), found.subject)


def _warn(notes: Iterable[str], depth: int = 3) -> None:
    """Notes as warnings, of the line of the user's program that is so many calls up."""
    for note in notes:
        warnings.warn(note, RematWarning, stacklevel=depth)


def check(certificate: File, plan: Plan | Model, *, costs: File | Costs | None = None) -> Proved:
    """What a certificate proves, in whole numbers and without any solver. Raises Mismatch for what does not follow.

    `plan`: the plan that it came with, or the model, where it says that there is no plan; `costs` go with a model.
    """
    given = certificatefile.read(Path(certificate))
    if isinstance(plan, onnx.ModelProto) or (isinstance(plan, str | os.PathLike) and is_model(Path(plan))):
        held = costs if isinstance(costs, Costs | None) else Path(costs)
        return certifying.checked(given, given_subject(_model(plan), held, {}, STRICT), STRICT)
    return certifying.checked_plan(given, _plan(plan))


def sweep(
    model: Model,
    *,
    budgets: str | Sequence[int | str] = "/8",
    methods: Sequence[str] = (DEFAULT,),
    session: str = "strict",
    allocator: str | None = None,
    costs: File | Costs | None = None,
    dims: Mapping[str, int] | None = None,
    time_limit: float | str = 90.0,
    gap: float = 0.001,
    seed: int = 0,
    cache: bool = True,
    report: Callable[[sweeping.SweepProgress], None] | None = None,
) -> Curve:
    """What each budget costs, by method: its `points`, and the `knee` among them; `planned(point)` is a point's plan.

    `budgets`: as the command takes them, or one by one. `time_limit`: for all of it. `report` hears how far it is.
    """
    words = budgets if isinstance(budgets, str) else ",".join(map(str, budgets))
    kind = solving.kind_named(session, allocator)
    try:
        asked = sweeping.SweepQuestion(budgets=parse_budgets(words), methods=tuple(methods), session=kind)
    except ValueError as error:
        raise Usage(str(error)) from error
    asked.check()
    clock = Clock(_seconds(time_limit))
    given = costs if isinstance(costs, Costs | None) else Path(costs)
    subject = given_subject(_model(model), given, dict(dims or {}), kind)
    memory = Memory(store=Store(folder()), seconds=clock.seconds) if cache else None
    return sweeping.Sweep(subject, asked, Limits(clock, gap, seed), memory, report or _nobody).run()


def max_batch(
    model: Model,
    *,
    budget: int | str,
    max_overhead: float | None = None,
    method: str = DEFAULT,
    baselines: Sequence[str] = BASELINES,
    dim: str | None = None,
    dims: Mapping[str, int] | None = None,
    step: int = 1,
    loss: str | None = None,
    logits: str | None = None,
    optimizer: str = "none",
    train: bool = False,
    freeze_bn: bool = False,
    costs: File | Costs | None = None,
    estimate: str | None = None,
    measure: bool | None = None,
    session: str = "strict",
    allocator: str | None = None,
    time_limit: float | str = 600.0,
    seed: int = 0,
    cache: bool = True,
    report: Callable[[str], None] | None = None,
) -> Largest:
    """The largest batch, or other `dim`, whose step fits the budget: its `size`, its `plan`, and what of the `next`.

    `model`: a forward model or a training graph, with that dimension symbolic. `max_overhead`: a share; by default one
    more forward pass. `measure`: whether ops are measured at the size that comes out; by default unless costs or an
    estimate are given. `report` hears what is being tried.
    """
    bytes_ = _budget(budget)
    assert bytes_ is not None
    kind = solving.kind_named(session, allocator)
    clock = Clock(_seconds(time_limit))
    asked = sizing.SizeQuestion(
        budget=bytes_, method=method, share=max_overhead, baselines=tuple(baselines), step=step, session=kind
    )
    options = Options(loss=loss, logits=logits, recipe=recipe_of(optimizer, {}), freeze_bn=freeze_bn, train=train)
    given = costs if isinstance(costs, Costs | None) else Path(costs)
    sizes = dict(dims or {})
    how = SizedStep(dim=dim, dims=sizes, costs=given, estimate=estimate, here=measure, options=options, session=kind)
    memory = Memory(store=Store(folder()), seconds=clock.seconds) if cache else None
    steps, limits = scaled(_model(model), how), Limits(clock, seed=seed)
    return sizing.largest(steps.at, asked, limits, memory, report or _nobody, steps.measured)


def emit(plan: Plan, *, functions: bool = False) -> onnx.ModelProto:
    """The rewritten model. Its external tensors, if any, are named as in the original model."""
    return emitting.emit(_plan(plan), functions).model


def verify(
    plan: Plan,
    *,
    feeds: File | Mapping[str, Any] | None = None,
    seed: int = 0,
    cap: bool | None = None,
    provider: str = "cpu",
    timeout: float = TIMEOUT,
    rtol: float = 0.0,
    atol: float = 0.0,
    level: str = "all",
    timing: float = 0.0,
) -> Verified:
    """Run both models on the real runtime, each in a process of its own. Raises Mismatch where a promise fails.

    `rtol`, `atol`: how far results may be off; by default the bits are the same. `level`: of a default session's
    optimizations. `timing`: seconds for timing both, their runs taking turns; what they took is `report.timed`.
    """
    given = Path(feeds) if isinstance(feeds, str | os.PathLike) else feeds
    trial = Trial(
        feeds=given,
        seed=seed,
        cap=cap,
        provider=provider,
        timeout=timeout,
        near=Tolerance(rtol, atol),
        level=level,
        seconds=timing,
    )
    return verifying.verified(_plan(plan), trial).or_raised("the plan")


def session(plan: Plan, *, providers: Sequence[Any] = CPU, keep_state: bool = False) -> Any:
    """An onnxruntime.InferenceSession on the rewritten model that keeps the plan's promise: of the plan's kind.

    On a CPU every value lies where the plan says, or where the first run shows that it can, if the plan's costs are
    estimates. It runs on as many threads as the costs are for, since kernels work in memory of each thread's own. Other
    providers keep their own arenas.

    Outputs that the plan holds once are written over the arrays given for their inputs, which `run` gives back as those
    outputs. `keep_state`: they are not, and both are held, in so much more memory.
    """
    planned = _plan(plan)
    made, graph = _session(planned, providers), planned.subject.graph
    if graph is None or keep_state or tuple(providers) != CPU:
        return made
    return in_place(made, graph.in_place)


def _session(planned: Planned, providers: Sequence[Any]) -> Any:
    content, folder = content_of(emitting.emit(planned).model), planned.subject.path.resolve().parent
    places, threads = planned.recorded.placement, planned.subject.threads
    if planned.recorded.kind.allocator == OWN:
        return by_default_of(content, folder, providers, threads)
    if places is None or tuple(providers) != CPU:
        return session_of(content, folder, providers, threads)
    return planned_of(content, folder, placement_in(places) if planned.subject.measured else None, threads=threads)


def load_plan(path: File) -> Planned:
    """A plan that `remat solve` or `save` wrote; refused if its model or costs have changed."""
    return load_planned(Path(path))


def _model(given: Model) -> Path | onnx.ModelProto:
    if isinstance(given, onnx.ModelProto):
        return given
    if isinstance(given, str | os.PathLike):
        return Path(given)
    if hasattr(given, "named_parameters"):
        export = "torch.onnx.export(module, (example,), 'm.onnx', dynamo=True, optimize=False)"
        raise Usage(f"this is a PyTorch module, not an ONNX model: write one with {export} and give 'm.onnx'")
    raise Usage(f"a model is a path or an onnx.ModelProto, not {type(given).__name__}")


def _plan(given: Plan) -> Planned:
    if isinstance(given, Planned | str | os.PathLike):
        return given if isinstance(given, Planned) else load_plan(given)
    raise Usage(f"a plan is what solve gives, or its file's path, not {type(given).__name__}")


def _seconds(given: float | str) -> float:
    """A time in seconds, or as the command takes it: "5s", "2m"."""
    if not isinstance(given, str):
        return given
    try:
        return parse_seconds(given)
    except ValueError as error:
        raise Usage(str(error)) from error


def _budget(given: int | str | None) -> Budget | None:
    if given is None:
        return None
    try:
        return parse_budget(str(given))
    except ValueError as error:
        raise Usage(str(error)) from error


def _nobody(_: object) -> None:
    return None
