"""The partitioner that AOTAutograd is given: a joint graph in, a forward and a backward graph out, within the budget.

Invariant: what is returned computes what the joint graph does, or is torch's own partition, with a warning that says
why. No error of ours reaches the training.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from torch import fx

from profiles.roofline import names
from remat_cli.errors import RematWarning as RematWarning
from remat_cli.torch import dropout, layouts
from remat_cli.torch import joint as joints
from remat_cli.torch.aiming import Aim, Aimed, Foretold, aim
from remat_cli.torch.alike import alike
from remat_cli.torch.allowance import Allowance, allowance_of
from remat_cli.torch.beside import Beside
from remat_cli.torch.building import Split, build
from remat_cli.torch.checking import Differs, check
from remat_cli.torch.checkpoints import KEEP, LIFT, asked, obey
from remat_cli.torch.estimates import estimates
from remat_cli.torch.fusing import copies_of_weights, fuse, fused_prices
from remat_cli.torch.generated import HeldByCode
from remat_cli.torch.lowering import Lowered, Pricing, lower
from remat_cli.torch.measuring import MeasuredPrices, measured
from remat_cli.torch.planning import PlannedOrder, find_together, judge
from remat_cli.torch.private import functorch_config, partition_by_torch
from remat_cli.torch.ranks import RanksDiffer, compare
from remat_cli.torch.reading import NotUnderstood, is_collective
from remat_cli.torch.remembering import Order, key, time_of
from remat_cli.torch.seeds import seeds
from remat_cli.torch.sharing import GraphRoom, furnish
from remat_cli.torch.written import More, recall_written, remember_written
from remat_cli.units import show_bytes
from solvers.clock import Clock, limited
from solvers.problem import Problem
from solvers.schedule import baseline, evaluate

MOVES_PER_OP = 1500  # of a search; they take about a millisecond, where torch takes 5 to 10 to trace an op
FEW_OPS = 100  # smaller graphs are searched like those
MOST_SECONDS = 30.0  # of a search on a busy machine
Rooms = Callable[[Lowered], GraphRoom]
Foretell = Callable[[Split, Sequence[bool], bool], HeldByCode | None]


@dataclass(frozen=True, slots=True)
class PlannedJoint:
    """One graph's plan, or the reason why it has none.

    `over`: the message where the plan needs more than its room. `told`: what the code that Inductor makes of it holds,
    where that was asked for.
    """

    lowered: Lowered | None
    found: PlannedOrder | None
    why: str = ""
    over: str = ""
    told: Foretold | None = None


@dataclass(slots=True)
class Partitioner:
    """A partitioner: call it as AOTAutograd does. `plans`: the plan of each graph so far."""

    allowance: Allowance
    pricing: Pricing
    clock: Callable[[int], Clock]  # the limit of each graph's search, given the number of its ops
    checkpoints: str = LIFT  # how blocks under `torch.utils.checkpoint` are treated
    fused_for: str = ""  # the device that Inductor compiles for, if the graphs are for Inductor
    foretell: Foretell | None = None  # at what Inductor makes of a plan
    plans: list[PlannedJoint] = field(default_factory=list)

    def __call__(self, module: fx.GraphModule, inputs: Any, **given: Any) -> Split:
        result = self.split(module, inputs, self.allowance.room, **given)
        if self.plans[-1].over:
            warnings.warn(self.plans[-1].over, RematWarning, stacklevel=2)
        return result

    def split(
        self,
        module: fx.GraphModule,
        inputs: Any,
        room: Rooms,
        *,
        num_fwd_outputs: int,
        leaves: Sequence[bool] = (),
        **given: Any,
    ) -> Split:
        """The two graphs of a plan within the graph's room. `leaves`: see `layouts.match`."""
        try:
            return self._plan(module, inputs, num_fwd_outputs, room, leaves)
        except RanksDiffer:
            raise
        except NotUnderstood as error:
            why = str(error)
        except Differs as error:
            why = f"the plan's graphs would not compute the same ({error}); please report this"
        except Exception as error:  # noqa: BLE001  whatever it is, the training goes on as it would without us
            why = f"{type(error).__name__}: {error}; please report this"
        warnings.warn(f"remat: torch's own partition is used, without a budget: {why}", RematWarning, stacklevel=2)
        self.plans.append(PlannedJoint(None, None, why))
        return partition_by_torch(module, inputs, num_fwd_outputs=num_fwd_outputs, **_known(given))

    def _plan(
        self, module: fx.GraphModule, inputs: Any, num_fwd_outputs: int, room: Rooms, leaves: Sequence[bool]
    ) -> Split:
        _check_settings()
        masked = joints.copy_of(module)
        dropout.split(masked.graph)
        layouts.match(masked.graph, num_fwd_outputs, leaves)
        lowered = self._lower(masked, num_fwd_outputs)
        joint = lowered.joint
        if isinstance(self.pricing, MeasuredPrices):
            self.pricing.save()

        own, known = room(lowered), list[Order]()
        problem = furnish(lowered, own)

        def search(limit: int, asked: Problem = problem) -> PlannedOrder:
            clock = self.clock(len(asked.nodes))

            def candidates() -> list[Order]:
                if not known and clock.most is None:  # each takes longer than a search that is limited by work
                    known.extend(seeds(lowered, masked, inputs, clock))
                return known

            return find_together(asked, limit, clock, candidates)

        plan = self._aimed(lowered, search)
        if plan is None:
            found = search(own.limit)
            split, told = build(lowered, found.order), None
            over = "" if found.fits else over_budget(found.budget, found.outcome.peak, found.least_peak_bound)
        else:
            found, split, told = plan.found, plan.split, plan.told
            over = over_budget(told.budget, told.peak) + copies_of_weights(joint) if told.over else ""
        check(module.graph, split[0].graph, split[1].graph, num_fwd_outputs)
        self.agree(lowered, own, found.order)
        self.plans.append(PlannedJoint(lowered, alone(lowered, found), over=over, told=told))
        return split

    def _lower(self, module: fx.GraphModule, num_fwd_outputs: int) -> Lowered:
        """The graph's problem, and where checkpoints are lifted also that of the step as written."""
        joint = joints.read(module, num_fwd_outputs)
        if self.checkpoints == KEEP:
            obey(joint)
        lowered = lower(joint, self.prices(joint))
        if self.checkpoints == KEEP or not asked(joint):
            return lowered
        kept = joints.read(module, num_fwd_outputs)
        obey(kept)
        return replace(lowered, checkpointed=lower(kept, self.prices(kept)))

    def _aimed(self, lowered: Lowered, search: Callable[[int, Problem], PlannedOrder]) -> Aimed | None:
        """The plan by the peak of its code, where that can be foretold."""
        see = self.foretell
        if see is None:
            return None
        holds = set(joints.held_outputs(lowered.joint))
        held = [output in holds for output in lowered.joint.forward_outputs]
        problem = lowered.problem

        def as_written(whole: int) -> int:
            kept = lowered.checkpointed
            order = tuple(range(len(kept.problem.nodes))) if kept else ()
            seen = see(build(kept, order), held, False) if kept else None
            return seen.peak if seen else whole

        way = Aim(
            search=lambda limit, more: search(limit, holding(problem, more)),
            alike=lambda order, more: alike(holding(problem, more), order),
            judge=lambda order, more: judge(holding(problem, more), order, 0),
            build=lambda found: build(lowered, found.order),
            look=lambda split, ready: see(split, held, ready),
            as_written=as_written,
            allowed=lambda written: self.allowance.bytes(written, problem.resident),
        )
        written = recall_written(problem)
        found = aim(way, search(baseline(problem)[1].peak, problem), written)
        remember_written(problem, written)
        return found

    def agree(self, lowered: Lowered, room: GraphRoom, order: Order) -> None:
        """Hold the plan against those of other ranks for the same graph and room. Raises RanksDiffer where collectives
        are in it."""
        asked = key(lowered.problem, room.limit, time_of(self.clock(len(lowered.problem.nodes))))
        question = f"{asked}/{room.saved}/{room.gradients}"
        if compare(question, hashlib.sha256(repr(order).encode()).hexdigest()):
            return
        text = "remat: another rank has another plan of this graph"
        if any(is_collective(op) for op in lowered.joint.effects):
            raise RanksDiffer(f"{text}, in which there are collectives: ranks of one machine and version make one plan")
        warnings.warn(text, RematWarning, stacklevel=2)

    def prices(self, joint: joints.Joint) -> Pricing:
        """The cost of ops in this graph; a fusing compiler makes other kernels of them."""
        if not self.fused_for:
            return self.pricing
        fuse(joint)
        return fused_prices(joint, self.fused_for)


def holding(problem: Problem, more: More) -> Problem:
    """The problem with ops that hold so much more while they run."""
    nodes = [replace(node, workspace=node.workspace + more.get(op, 0)) for op, node in enumerate(problem.nodes)]
    return replace(problem, nodes=tuple(nodes))


def alone(lowered: Lowered, found: PlannedOrder) -> PlannedOrder:
    """The planned order, with the figures of the graph alone."""
    outcome, before = evaluate(lowered.problem, found.order)[1], baseline(lowered.problem)[1]
    return replace(found, outcome=outcome, before=before)


def over_budget(budget: int, peak: int, bound: int | None = None) -> str:
    """The message where no plan was found that keeps to the budget."""
    text = (
        f"remat: no plan was found within {show_bytes(budget)}; the leanest known holds {show_bytes(peak)} and is used"
    )
    return text + (f" (nothing can hold less than {show_bytes(bound)})" if bound else "")


def partition_fn(
    budget: str | int,
    costs: str = "cpu",
    time_limit: float | None = None,
    beside: Beside = 0,
    checkpoints: Literal["lift", "keep"] = "lift",
) -> Partitioner:
    """A partitioner for `aot_autograd(partition_fn=...)` and the like, each of whose graphs has the budget for itself.

    The arguments are those of `backend`.
    """
    if checkpoints not in (LIFT, KEEP):
        raise ValueError(f"checkpoints is '{LIFT}' or '{KEEP}', not {checkpoints!r}")
    return Partitioner(allowance_of(budget, beside), pricing(costs), clock_of(time_limit), checkpoints)


def clock_of(time_limit: float | None) -> Callable[[int], Clock]:
    """The limit of the search for a graph with so many ops: seconds, or by default work in proportion to its ops, which
    is the same on every machine."""
    if time_limit is not None:
        return lambda _: Clock(time_limit)
    return lambda ops: limited(MOST_SECONDS, MOVES_PER_OP * max(ops, FEW_OPS))


def pricing(costs: str) -> Pricing:
    if costs == "measure":
        return measured(estimates("cpu"))
    if costs.endswith(".yaml"):
        return measured(estimates("cpu"), Path(costs))
    if costs not in names():
        raise ValueError(f"costs is 'measure', a *.costs.yaml file or one of {', '.join(names())}, not {costs!r}")
    return estimates(costs)


def _check_settings() -> None:
    if functorch_config.enable_activation_offloading:
        raise NotUnderstood("torch._functorch.config.enable_activation_offloading is set")
    if functorch_config.functionalize_rng_ops:
        raise NotUnderstood("torch._functorch.config.functionalize_rng_ops is set")


def _known(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the installed torch's partitioner takes, of those given."""
    return {name: given[name] for name in ("compiler", "static_lifetime_input_indices") if name in given}
