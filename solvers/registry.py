"""Every method, in order of preference: one literal table that help, docs and tests read.

Invariant: names a method's place without importing it, so that `--help` stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from solvers.methods.baselines.options import PaperForm, Rounding, SegmentCount, Snapshots, Walking
from solvers.methods.chains.options import Divided
from solvers.methods.exact.options import Known
from solvers.methods.mincut.options import CutOptions
from solvers.options import NoOptions, built
from solvers.problem import Solver

DEFAULT = "auto"  # the method of whoever names none


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What a user chooses by. The marks are the columns of Checkmate's Table 1, and then some; what is not said is no.

    `unbudgeted`: its options where no budget is given; None if it cannot do without. `may_reorder`: it tries another
    order of first computes where the model's own leads to no plan.
    """

    place: str  # "package.module:function"
    says: str
    typical: str  # time on a graph of 2000 nodes
    general: bool = False  # any graph, not only chains
    cost_aware: bool = False
    memory_aware: bool = False
    proof: bool = False  # can prove an optimum or a bound
    options: type = NoOptions  # the record of what it can be told
    unbudgeted: Mapping[str, Any] | None = None
    may_reorder: bool = False
    own_order: bool = False  # it finds the order of first computes itself

    @property
    def needs_budget(self) -> bool:
        return self.unbudgeted is None

    def load(self, **given: Any) -> Solver:
        """The method, told this; ValueError if it cannot be."""
        options = built(self.options, given)
        module, function = self.place.split(":")
        solve = getattr(import_module(module), function)
        return partial(solve, options=options) if given else solve


METHODS: dict[str, Method] = {
    "auto": Method(
        place="solvers.methods.auto.auto:solve",
        says="the order of first computes and the recomputation together, with a bound for every order",
        general=True,
        cost_aware=True,
        memory_aware=True,
        proof=True,
        typical="30 s",
        options=Known,
        may_reorder=True,
        own_order=True,
    ),
    "milp": Method(
        place="solvers.methods.exact.milp:solve",
        says="the optimum with its proof, or the best found and how far from the optimum it can be",
        general=True,
        cost_aware=True,
        memory_aware=True,
        proof=True,
        typical="30 s",
        options=Known,
        may_reorder=True,
    ),
    "lp-walks": Method(
        place="solvers.methods.baselines.lp_walks:solve",
        says="the linear relaxation with its bound, rounded in many ways and followed by eviction walks",
        general=True,
        cost_aware=True,
        memory_aware=True,
        proof=True,
        typical="30 s",
        options=Walking,
    ),
    "rotor+": Method(
        place="solvers.methods.chains.methods:rotor_plus",
        says="Rotor over stages that can each be run in several ways, found exactly for each distinct stage",
        general=True,
        cost_aware=True,
        memory_aware=True,
        typical="30 s",
        options=Divided,
    ),
    "evict": Method(
        place="solvers.methods.baselines.evict:solve",
        says="walk the ops, evict what costs least to have again, recompute what is missing",
        general=True,
        cost_aware=True,
        memory_aware=True,
        typical="1 s",
    ),
    "min-cut": Method(
        place="solvers.methods.mincut.min_cut:solve",
        says="the fusion-aware minimum cut between forward and backward; needs no budget, keeps to one if there is one",
        general=True,
        cost_aware=True,
        memory_aware=True,
        typical="10 s",
        options=CutOptions,
        unbudgeted={"objective": "paper"},
    ),
    "rotor": Method(
        place="solvers.methods.chains.methods:rotor",
        says="Rotor: the optimal sequence over a chain of stages that keeps what it keeps until its backward",
        cost_aware=True,
        memory_aware=True,
        typical="5 s",
        options=Divided,
    ),
    "rotor-floating": Method(
        place="solvers.methods.chains.methods:rotor_floating",
        says="Rotor with activations that may be given up before their backward; for chains of up to 100 stages",
        cost_aware=True,
        memory_aware=True,
        typical="20 s",
        options=Divided,
    ),
    "revolve": Method(
        place="solvers.methods.chains.methods:revolve",
        says="Revolve for stages of different times and sizes: inputs are kept, each backward follows its forward",
        cost_aware=True,
        memory_aware=True,
        typical="5 s",
        options=Divided,
    ),
    "ap-greedy": Method(
        place="solvers.methods.baselines.chen:ap_greedy",
        says="checkpoints at articulation points, placed by size",
        general=True,
        memory_aware=True,
        typical="1 s",
    ),
    "linearized-greedy": Method(
        place="solvers.methods.baselines.chen:linearized_greedy",
        says="checkpoints placed by size, as if the graph were a chain",
        general=True,
        memory_aware=True,
        typical="1 s",
    ),
    "chen-greedy": Method(
        place="solvers.methods.baselines.chen:chen_greedy",
        says="checkpoints placed by size, on chains",
        memory_aware=True,
        typical="1 s",
    ),
    "ap-sqrt": Method(
        place="solvers.methods.baselines.chen:ap_sqrt",
        says="every sqrt(n)-th articulation point is a checkpoint",
        general=True,
        typical="0.1 s",
    ),
    "linearized-sqrt": Method(
        place="solvers.methods.baselines.chen:linearized_sqrt",
        says="every sqrt(n)-th op is a checkpoint, as if the graph were a chain",
        general=True,
        typical="0.1 s",
    ),
    "chen-sqrt": Method(
        place="solvers.methods.baselines.chen:chen_sqrt",
        says="every sqrt(n)-th op is a checkpoint, on chains",
        typical="0.1 s",
    ),
    "griewank": Method(
        place="solvers.methods.baselines.griewank:solve",
        says="binomial checkpointing (REVOLVE), on chains",
        typical="2 s",
        options=Snapshots,
    ),
    "periodic": Method(
        place="solvers.methods.baselines.periodic:solve",
        says="s segments of equally many stages, as PyTorch's checkpoint_sequential",
        general=True,
        typical="1 s",
        options=SegmentCount,
    ),
    "checkpoint-layers": Method(
        place="solvers.methods.baselines.checkpoint_layers:solve",
        says="one checkpoint a layer, each layer computed again as a whole",
        general=True,
        typical="1 s",
    ),
    "full-checkpoint": Method(
        place="solvers.methods.baselines.ends:full_checkpoint",
        says="keep nothing of the forward pass, and run the whole of it once more before the backward pass",
        general=True,
        typical="1 s",
    ),
    "recompute-all": Method(
        place="solvers.methods.baselines.ends:recompute_all",
        says="keep nothing: each backward op has all it reads computed from the start",
        general=True,
        typical="1 s",
    ),
    "checkpoint-all": Method(
        place="solvers.methods.baselines.ends:checkpoint_all",
        says="keep everything, compute nothing twice",
        general=True,
        typical="0 s",
    ),
    "lp-rounding": Method(
        place="solvers.methods.baselines.lp_rounding:solve",
        says="Checkmate's two-phase rounding, Algorithm 2 as printed; may overshoot, and says by how much",
        general=True,
        cost_aware=True,
        memory_aware=True,
        typical="out of reach",
        options=Rounding,
    ),
    "milp-paper": Method(
        place="solvers.methods.baselines.milp_paper:solve",
        says="Checkmate's program, equations (1) to (8) as printed",
        general=True,
        cost_aware=True,
        memory_aware=True,
        proof=True,
        typical="out of reach",
        options=PaperForm,
    ),
}
