"""The partitioner that AOTAutograd is given: a joint graph in, a forward and a backward graph out, within the budget.

Invariant: what is returned computes what the joint graph does, or is torch's own partition, with a warning that says
why. No error of ours reaches the training.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import fx
from torch._functorch import config, partitioners

from profiles.roofline import names
from remat_cli.errors import RematWarning as RematWarning
from remat_cli.model.quantities import Budget, parse_budget
from remat_cli.saying.units import show_bytes
from remat_cli.torch import joint as joints
from remat_cli.torch.building import Split, build
from remat_cli.torch.checking import Differs, check
from remat_cli.torch.estimates import estimates
from remat_cli.torch.fusing import fuse, fused_prices
from remat_cli.torch.lowering import Lowered, Pricing, lower
from remat_cli.torch.measuring import MeasuredPrices, measured
from remat_cli.torch.planning import Order, PlannedOrder, find
from remat_cli.torch.reading import NotUnderstood
from remat_cli.torch.seeds import seeds
from solvers.clock import Clock


@dataclass(frozen=True, slots=True)
class PlannedJoint:
    """One graph's plan, or why it has none."""

    lowered: Lowered | None
    found: PlannedOrder | None
    why: str = ""


@dataclass(slots=True)
class Partitioner:
    """Call it as AOTAutograd does. `plans`: what it did with each graph so far."""

    budget: Budget
    pricing: Pricing
    clock: Callable[[], Clock]  # how long a graph may be searched
    fused: bool = False  # whether the graphs are for Inductor
    plans: list[PlannedJoint] = field(default_factory=list)

    def __call__(self, module: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **given: Any) -> Split:
        try:
            return self._planned(module, inputs, num_fwd_outputs)
        except NotUnderstood as error:
            why = str(error)
        except Differs as error:
            why = f"the plan's graphs would not compute the same ({error}); please report this"
        except Exception as error:  # noqa: BLE001  whatever it is, the training goes on as it would without us
            why = f"{type(error).__name__}: {error}; please report this"
        warnings.warn(f"remat: torch's own partition is used, without a budget: {why}", RematWarning, stacklevel=2)
        self.plans.append(PlannedJoint(None, None, why))
        return partitioners.min_cut_rematerialization_partition(
            module, inputs, num_fwd_outputs=num_fwd_outputs, **_known(given)
        )

    def _planned(self, module: fx.GraphModule, inputs: Any, num_fwd_outputs: int) -> Split:
        _check_settings()
        joint = joints.read(module, num_fwd_outputs)
        lowered = lower(joint, self.prices(joint))
        if isinstance(self.pricing, MeasuredPrices):
            self.pricing.save()

        clock = self.clock()

        def candidates() -> Iterator[Order]:
            return seeds(lowered, module, inputs, clock)

        found = find(lowered.problem, self.budget, clock, candidates)
        split = build(lowered, found.order)
        check(module.graph, split[0].graph, split[1].graph, num_fwd_outputs)
        if not found.fits:
            warnings.warn(over_budget(found), RematWarning, stacklevel=4)
        self.plans.append(PlannedJoint(lowered, found))
        return split

    def prices(self, joint: joints.Joint) -> Pricing:
        """What an op costs in this graph, of which a fusing compiler makes other kernels."""
        if not self.fused:
            return self.pricing
        fuse(joint)
        return fused_prices(joint)


def over_budget(found: PlannedOrder) -> str:
    """What is said where no plan was found that keeps to the budget."""
    text = f"remat: no plan was found within {show_bytes(found.budget)}; the leanest known holds"
    text += f" {show_bytes(found.outcome.peak)} and is used"
    bound = found.least_peak_bound
    return text + (f" (nothing can hold less than {show_bytes(bound)})" if bound else "")


def partition_fn(budget: str | int, costs: str = "cpu", time_limit: float = 10.0) -> Partitioner:
    """A partitioner for `aot_autograd(partition_fn=...)` and the like. `costs`: a device's name, or "measure"."""
    return Partitioner(parse_budget(str(budget)), pricing(costs), lambda: Clock(time_limit))


def pricing(costs: str) -> Pricing:
    if costs == "measure":
        return measured(estimates("cpu"))
    if costs.endswith(".yaml"):
        return measured(estimates("cpu"), Path(costs))
    if costs not in names():
        raise ValueError(f"costs is 'measure', a *.costs.yaml file or one of {', '.join(names())}, not {costs!r}")
    return estimates(costs)


def _check_settings() -> None:
    if config.enable_activation_offloading:
        raise NotUnderstood("torch._functorch.config.enable_activation_offloading is set")
    if config.functionalize_rng_ops:
        raise NotUnderstood("torch._functorch.config.functionalize_rng_ops is set")


def _known(given: dict[str, Any]) -> dict[str, Any]:
    """Of what a newer torch may hand over, that which its partitioner takes."""
    return {name: given[name] for name in ("compiler", "static_lifetime_input_indices") if name in given}
