"""Every method, in order of preference: one literal table that help, docs and tests read.

Invariant: names a method's place without importing it, so that `--help` stays quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from solvers.problem import Solver


@dataclass(frozen=True, slots=True)
class Method:
    """What a user chooses by. The columns are those of Checkmate's Table 1, and then some."""

    place: str  # "package.module:function"
    says: str
    general: bool  # any graph, not only chains
    cost_aware: bool
    memory_aware: bool
    proof: bool  # can prove an optimum or a bound
    typical: str  # time on a graph of 2000 nodes
    options: tuple[str, ...] = ()  # keyword arguments beyond the signature that all share

    def load(self) -> Solver:
        module, function = self.place.split(":")
        solver: Solver = getattr(import_module(module), function)
        return solver


METHODS: dict[str, Method] = {
    "milp": Method(
        "solvers.exact.milp:solve",
        "the optimum with its proof, or the best found and how far from the optimum it can be",
        True,
        True,
        True,
        True,
        "30 s",
        ("candidates",),
    ),
    "lp-rounding": Method(
        "solvers.baselines.lp_rounding:solve",
        "the linear relaxation rounded, with its bound",
        True,
        True,
        True,
        True,
        "30 s",
        ("lp", "rounding", "samples"),
    ),
    "rotor+": Method(
        "solvers.chains.methods:rotor_plus",
        "Rotor over stages that can each be run in several ways, found exactly for each distinct stage",
        True,
        True,
        True,
        False,
        "30 s",
        ("slots",),
    ),
    "evict": Method(
        "solvers.baselines.evict:solve",
        "walk the ops, evict what costs least to have again, recompute what is missing",
        True,
        True,
        True,
        False,
        "1 s",
    ),
    "min-cut": Method(
        "solvers.mincut.min_cut:solve",
        "the fusion-aware minimum cut between forward and backward; needs no budget, keeps to one if there is one",
        True,
        True,
        True,
        False,
        "10 s",
        ("paper", "objective", "between_groups", "fusion"),
    ),
    "rotor": Method(
        "solvers.chains.methods:rotor",
        "Rotor: the optimal sequence over a chain of stages that keeps what it keeps until its backward",
        False,
        True,
        True,
        False,
        "5 s",
        ("slots",),
    ),
    "rotor-floating": Method(
        "solvers.chains.methods:rotor_floating",
        "Rotor with activations that may be given up before their backward; for chains of up to 100 stages",
        False,
        True,
        True,
        False,
        "20 s",
        ("slots",),
    ),
    "revolve": Method(
        "solvers.chains.methods:revolve",
        "Revolve for stages of different times and sizes: inputs are kept, each backward follows its forward",
        False,
        True,
        True,
        False,
        "5 s",
        ("slots",),
    ),
    "ap-greedy": Method(
        "solvers.baselines.ap_greedy:solve",
        "checkpoints at articulation points, placed by size",
        True,
        False,
        True,
        False,
        "1 s",
    ),
    "linearized-greedy": Method(
        "solvers.baselines.linearized_greedy:solve",
        "checkpoints placed by size, as if the graph were a chain",
        True,
        False,
        True,
        False,
        "1 s",
    ),
    "chen-greedy": Method(
        "solvers.baselines.chen_greedy:solve",
        "checkpoints placed by size, on chains",
        False,
        False,
        True,
        False,
        "1 s",
    ),
    "ap-sqrt": Method(
        "solvers.baselines.ap_sqrt:solve",
        "every sqrt(n)-th articulation point is a checkpoint",
        True,
        False,
        False,
        False,
        "0.1 s",
    ),
    "linearized-sqrt": Method(
        "solvers.baselines.linearized_sqrt:solve",
        "every sqrt(n)-th op is a checkpoint, as if the graph were a chain",
        True,
        False,
        False,
        False,
        "0.1 s",
    ),
    "chen-sqrt": Method(
        "solvers.baselines.chen_sqrt:solve",
        "every sqrt(n)-th op is a checkpoint, on chains",
        False,
        False,
        False,
        False,
        "0.1 s",
    ),
    "griewank": Method(
        "solvers.baselines.griewank:solve",
        "binomial checkpointing (REVOLVE), on chains",
        False,
        False,
        False,
        False,
        "2 s",
        ("snapshots",),
    ),
    "periodic": Method(
        "solvers.baselines.periodic:solve",
        "s segments of equally many ops, as PyTorch's checkpoint_sequential",
        True,
        False,
        False,
        False,
        "1 s",
        ("segments",),
    ),
    "recompute-all": Method(
        "solvers.baselines.recompute_all:solve",
        "keep nothing of the forward pass",
        True,
        False,
        False,
        False,
        "1 s",
    ),
    "checkpoint-all": Method(
        "solvers.baselines.checkpoint_all:solve",
        "keep everything, compute nothing twice",
        True,
        False,
        False,
        False,
        "0 s",
    ),
    "milp-paper": Method(
        "solvers.baselines.milp_paper:solve",
        "Checkmate's program, equations (1) to (8) as printed",
        True,
        True,
        True,
        True,
        "out of reach",
        ("splits", "no_stages"),
    ),
}
