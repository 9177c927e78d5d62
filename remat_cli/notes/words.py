"""The sentence of each kind of note: the one place where words are made of what planning and solvers say.

Invariant: every kind has a sentence, and nothing reads a sentence again.
"""

from __future__ import annotations

from collections.abc import Iterable

from remat_cli.notes.kinds import PlanNote
from solvers.notes import Note, SolverNote

_TRACED = "estimates know little of what kernels work in: a session's first run finds where values lie"
_ESTIMATED = "the costs are estimates for a CPU; `remat profile` measures them"
_TRIVIAL = "this is only the time of every op once"
_TOO_LARGE = "the paper's program would be too large to build"
_IN_ORDER = "covers every schedule that first computes the ops in the order given"
_OF_RELAXATION = f"the bound is a linear relaxation's and {_IN_ORDER}"

SENTENCES: dict[str, str] = {
    PlanNote.ESTIMATED: _ESTIMATED,
    PlanNote.ESTIMATED_AND_TRACED: f"{_ESTIMATED}; {_TRACED}",
    PlanNote.FROM_PAPER_AND_TRACED: f"the costs are from paper; {_TRACED}",
    PlanNote.SUBGRAPHS_UNKNOWN: (
        "estimates know nothing of what subgraphs work in, and `remat profile` sees it: {} {!r}{}"
    ),
    PlanNote.MEASURED_WHILE_BUSY: (
        "the costs were measured while others used this machine's processors (threads waited {:.0%} of the time), so"
        " times may read high; `remat profile` measures again once it is quieter"
    ),
    PlanNote.SEEN_IN_A_RUN: "{}",
    PlanNote.UNLIKE: "not as foretold, so the plan may not be either: {}",
    PlanNote.NEEDS_TRAINING_BUILD: (
        "not verified: only training builds run this graph (`pip install onnxruntime-training`, for Python 3.11)"
    ),
    PlanNote.NOT_RUN: "not verified: the original does not run here, as `remat profile` saw: {}",
    PlanNote.KERNELS_UNCHECKED: (
        "not checked: whether default options make other kernels of the rewritten model, as onnxruntime cannot load it"
        " here or it has more than 1 GiB of weights in its file"
    ),
    PlanNote.REORDERED: (
        "first computes stand in another order than the model's, one that needs less memory; a bound is for that order"
    ),
    PlanNote.STILL_SEARCHING: "the search was still going on",
    PlanNote.SCHEDULED_APART: (
        "ops that default options fuse are scheduled apart, so there their results may differ in the last bits"
    ),
    PlanNote.MADE_FOR_LESS: (
        "made for less than the budget: no plan for all of it was found that can be placed within it"
    ),
    PlanNote.WALKED: "from a walk that evicts: no better plan was found that can be placed within the budget",
    PlanNote.MET_EARLIER: ("found on the way: those found later could not be placed within the budget, or not in time"),
    PlanNote.KNOWN_BEFORE: "a plan that was known before, and that costs less than what was found now",
    PlanNote.MOVED: (
        "ops were moved about, at no cost, so that all they need can be placed; bounds are of the order before that"
    ),
    PlanNote.ARRANGED: (
        "ops were moved about and computed again until all runs in the arena; bounds are of the order before that"
    ),
    PlanNote.RUN_ONCE: "run once, since onnxruntime's optimizers would treat copies differently: {}",
    PlanNote.OF_ANOTHER_POINT: "the plan of {} for {} bytes",
    PlanNote.NOT_MEASURED: (
        "no plan was found in time for what the ops were measured to take at this size; it is from estimates"
    ),
    PlanNote.ASTRAY: (
        "with every one found, onnxruntime's optimizers would make other kernels than of the original, around {}"
    ),
    PlanNote.UNTRIED: (
        "a plan was found whose model did not run in the time that was left: give it more with --time-limit"
    ),
    PlanNote.HELD_AT_THE_END: (
        "whatever is fused or folded, inputs, weights and outputs are held together at the end of a run"
    ),
    PlanNote.DIFFERS_BY_DEFAULT: (
        "under default options weights are packed, constants folded, and memory laid out from an earlier run"
        " (not so with --session strict): the original holds {} bytes{}"
    ),
    PlanNote.DIFFERS: (
        "this model does not run as it says (`remat profile` names why; with --optimize disabled it does): the original"
        " holds {} bytes{}"
    ),
    PlanNote.PROFILED_WHILE_BUSY: "this machine was busy (load {:.1f}); times may read high",
    PlanNote.PROBE_SAYS: "{}",
    PlanNote.PROFILED_UNLIKE: "not as foretold: {}",
    PlanNote.PROFILED_NOT_RUN: "the model does not run here, so nothing of it is checked: {}",
    SolverNote.LEAST_PEAK_REACHED: "the least peak this method reaches is {} bytes",
    SolverNote.OVER_BUDGET: "the method's schedule needs {} bytes once all effects are counted",
    SolverNote.BOUND_IN_ORDER: f"the bound {_IN_ORDER}",
    SolverNote.BOUND_IN_OWN_ORDER: (
        "the bound covers every schedule that first computes the ops in this schedule's order; `bound_any_order` all"
    ),
    SolverNote.BOUND_IN_ANY_ORDER: "the bound covers every schedule, whatever the order of first computes",
    SolverNote.BOUND_OF_RELAXATION: _OF_RELAXATION,
    SolverNote.BOUND_OF_PAPER_RELAXATION: f"{_OF_RELAXATION}, none more than once between two first computes",
    SolverNote.BOUND_OF_PAPER_FORM: (
        "the bound covers schedules of the paper's form: ops first computed in the given order, and none computed again"
        " more than {} between two first computes"
    ),
    SolverNote.BOUND_WITHOUT_STAGES: (
        "the bound covers schedules that run through all ops in the given order, as often as there are ops"
    ),
    SolverNote.RELAXATION_SIZE: "the last relaxation had {} columns at {} boundaries",
    SolverNote.RELAXATION_UNSOLVED: "the relaxation has no solution, or none was found in time",
    SolverNote.PROGRAM_TOO_LARGE: _TOO_LARGE,
    SolverNote.PAPER_PROGRAM: "of the paper's program, equations (1) to (8)",
    SolverNote.PROGRAM_UNSOLVED: f"the paper's program was not solved in time: {_TRIVIAL}",
    SolverNote.PROGRAM_OF_CUTS: f"{_TOO_LARGE}: this is of the cuts in time at {{}} ops",
    SolverNote.PROGRAM_OF_CUTS_UNSOLVED: f"{_TOO_LARGE}, and another was not solved in time: {_TRIVIAL}",
    SolverNote.LINEAR_PROGRAM_TOO_LARGE: "the paper's linear program would be too large to build",
    SolverNote.LINEAR_PROGRAM_UNSOLVED: (
        "the linear program within {} bytes has no solution, or none was found in time"
    ),
    SolverNote.NO_PAPER_SCHEDULE: "no schedule of the paper's form fits; others may",
    SolverNote.ROUNDED: "rounded at {}: time {}, peak {}",
    SolverNote.ROUNDED_OVER: "rounded at {}: time {}, peak {}, which overshoots by {} bytes ({:.1%})",
    SolverNote.ROUNDED_SAMPLES: "{} samples: time {:.0f} +- {:.0f}, peak {:.0f} +- {:.0f}; {} of them fit",
    SolverNote.LEAST_PEAK_WITHIN: "least peak found at an overhead of at most {:.1%}",
    SolverNote.ONLY_CHAINS: "the forward graph is not a chain: use the method's ap- or linearized- form",
    SolverNote.FEWEST_FORWARD_RUNS: (
        "the fewest forward runs for each number of snapshots, on a chain whose links cost and need the same"
    ),
    SolverNote.SOME_KEPT: "to keep nothing takes too long; every {}th forward op is kept",
    SolverNote.NOTHING_BACKWARD: "no op is marked as backward, so there is nothing to cut between",
    SolverNote.SMALLEST_CUT: "the smallest of {} schedules needs {} bytes",
    SolverNote.CHAIN: "a chain of {} stages",
    SolverNote.CHAIN_CLASS: "{}",
    SolverNote.CHAIN_SEQUENCE: "{}",
    SolverNote.BACKWARD_GUESSED: (
        "the model does not say which ops are backward: taken from where most memory is held"
    ),
}


def sentence(note: Note) -> str:
    return SENTENCES[note.kind].format(*note.values)


def sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    return tuple(map(sentence, notes))
