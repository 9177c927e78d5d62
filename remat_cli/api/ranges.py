"""`remat.sweep` and `remat.max_batch`: many budgets of a step, and the largest step of a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from profiles.costs import Costs
from remat_cli import usual
from remat_cli.actions import largest as sizing
from remat_cli.actions import sweeping
from remat_cli.actions.interrupts import stoppable
from remat_cli.actions.largest import BASELINES
from remat_cli.actions.recipes import recipe_of
from remat_cli.actions.scaling import SizedStep, scale_step
from remat_cli.api import given
from remat_cli.api.given import File, Model
from remat_cli.api.keywords import OptimizerSettings
from remat_cli.arguments import switch, whole_number, word
from remat_cli.errors import Interrupted, Usage
from remat_cli.gradient.training import Options
from remat_cli.model.quantities import Budgets, parse_budgets
from remat_cli.planning.loading import load_subject
from remat_cli.plans.points import Curve
from remat_cli.plans.sizes import Largest
from solvers.problem import Limits
from solvers.registry import DEFAULT


def sweep(
    model: Model,
    *,
    budgets: str | Sequence[int | str] = usual.BUDGETS,
    methods: Sequence[str] | str = (DEFAULT,),
    runtime: str = "remat",
    session: str | None = None,
    costs: File | Costs | None = None,
    dims: Mapping[str, int] | None = None,
    in_place: Mapping[str, str] | bool | None = None,
    pieces: str = "off",
    largest_value: int | str | None = None,
    time_limit: float | str | None = None,
    work_limit: int | str | None = None,
    gap: float | str = usual.GAP,
    seed: int = 0,
    cache: bool = True,
    report: Callable[[sweeping.SweepProgress], None] | None = None,
) -> Curve:
    """What each budget costs, by method: its `points`, the `knee` among them where there is one, and `planned(point)`.

    - `model`, `costs`, `dims`, `runtime`, `session`, `in_place`, `gap`, `seed`, `cache`: as `solve` takes them.
    - `pieces`, `largest_value`: as `solve` takes them; all points have the pieces that suit the least budget,
      or whole ops where these cost less.
    - `budgets`: as the command takes them ("30%..100%/8"), or one by one. `methods`: one or several.
    - `time_limit`: for all of it, in seconds or words ("5m"), by default 90. `work_limit`: as `solve` takes it,
      for each search. `report`: called with how far it is.

    Example:

        curve = remat.sweep("train.onnx", budgets="40%..100%/4")
        print(curve.knee and curve.knee.budget)
    """
    kind = given.kind_of(runtime, session)
    asked = sweeping.SweepQuestion(
        budgets=_budgets(budgets),
        methods=given.names_of(methods, "methods"),
        session=kind,
        pieces=given.pieces_of(pieces, largest_value),
    )
    asked.check()
    clock = given.clock_of(time_limit, work_limit, usual.SWEEP_TIME)
    subject = load_subject(
        given.model_of(model), given.costs_of(costs), given.sizes_of(dims), kind, in_place=given.pairs_of(in_place)
    )
    memory = given.memory_of(cache, clock.seconds)
    with stoppable() as interrupts:
        limits = Limits(clock.unless(interrupts), given.share_of(gap, "gap"), given.seed_of(seed))
        curve = sweeping.Sweep(subject, asked, limits, memory, given.heard_by(report)).run()
    if interrupts.asked:
        raise Interrupted(found=curve)
    return curve


def _budgets(budgets: str | Sequence[int | str]) -> Budgets:
    if not isinstance(budgets, str):
        listed = given.items_of(budgets, "budgets") if isinstance(budgets, Iterable) else (budgets,)
        found = tuple(found for one in listed for found in _budgets_of(one))
        if not found:
            raise Usage("budgets: say at least one, such as '70%'")
        return found
    return _budgets_of(budgets)


def _budgets_of(one: int | str) -> Budgets:
    """A number of bytes, or one or several budgets in words."""
    if not isinstance(one, str):
        return (given.some_budget(one),)
    try:
        return parse_budgets(one)
    except ValueError as error:
        raise Usage(f"budgets: {error}") from error


def max_batch(
    model: Model,
    *,
    budget: int | str,
    max_overhead: float | str | None = None,
    method: str = DEFAULT,
    baselines: Sequence[str] | str = BASELINES,
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
    runtime: str = "remat",
    session: str | None = None,
    in_place: Mapping[str, str] | bool | None = None,
    pieces: str = "off",
    largest_value: int | str | None = None,
    time_limit: float | str | None = None,
    work_limit: int | str | None = None,
    seed: int = 0,
    cache: bool = True,
    report: Callable[[str], None] | None = None,
    **settings: Unpack[OptimizerSettings],
) -> Largest:
    """The largest batch whose step fits the budget: its `size`, its `plan`, and what of the `next`.

    - `model`: a forward model or a training graph, with that dimension symbolic. `dim`: its name, by default the
      batch's; `dims`: sizes of the others. `step`: sizes are multiples of it.
    - `budget`: bytes, or "16GB". `max_overhead`: a share of time; by default one more forward pass.
    - `loss`, `logits`, `optimizer` with its settings (`learning_rate`, `weight_decay`, `betas`, `eps`, `momentum`,
      `groups`, `clip`), `train`, `freeze_bn`: of a forward model, as `grad` takes them.
    - `method`; `baselines`: methods to say the same of. `runtime`, `session`, `in_place`, `seed`, `cache`: as of
      `solve`.
    - `costs`, `estimate`: what ops cost, if they are not measured. `measure`: whether they are, at the size that comes
      out; by default unless costs or an estimate are given.
    - `pieces`, `largest_value`: which ops may be cut, as `solve` takes it; no size is then proved not to fit by what
      whole ops need.
    - `time_limit`: for all of it, in seconds or words ("5m"), by default 600. `work_limit`: as `solve` takes it,
      for each search. `report`: called with what is being tried.

    Example:

        most = remat.max_batch("forward.onnx", budget="16GB", optimizer="adamw", estimate="v100")
        print(most.size, most.plan.overhead)
    """
    given.check_keywords(settings, max_batch, OptimizerSettings)
    kind, clock = given.kind_of(runtime, session), given.clock_of(time_limit, work_limit, usual.LARGEST_TIME)
    asked = sizing.SizeQuestion(
        budget=given.some_budget(budget),
        method=method,
        share=None if max_overhead is None else given.share_of(max_overhead, "max_overhead"),
        baselines=given.names_of(baselines, "baselines"),
        step=whole_number(step, "step", 1),
        session=kind,
        pieces=given.pieces_of(pieces, largest_value),
    )
    options = Options(
        loss=None if loss is None else word(loss, "loss"),
        logits=None if logits is None else word(logits, "logits"),
        recipe=recipe_of(word(optimizer, "optimizer"), settings),
        freeze_bn=switch(freeze_bn, "freeze_bn"),
        train=switch(train, "train"),
    )
    own = given.costs_of(costs)
    sizes = given.sizes_of(dims)
    how = SizedStep(
        dim=None if dim is None else word(dim, "dim"),
        dims=sizes,
        costs=own,
        estimate=None if estimate is None else word(estimate, "estimate"),
        here=None if measure is None else switch(measure, "measure"),
        options=options,
        session=kind,
    )
    steps = scale_step(given.model_of(model), replace(how, in_place=given.pairs_of(in_place)))
    memory = given.memory_of(cache, clock.seconds)
    heard = given.heard_by(report)
    with stoppable() as interrupts:
        limits = Limits(clock.unless(interrupts), seed=given.seed_of(seed))
        found = sizing.find_largest(steps.at, asked, limits, memory, steps.measured, heard)
    if interrupts.asked:
        raise Interrupted(found.plan, found)
    return found
