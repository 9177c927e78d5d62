"""The sentence of each kind of note: the one place that turns notes of planning and solvers into words.

Invariant: every kind has a sentence, and no code reads a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable

from remat_cli.notes.kinds import PlanNote
from remat_cli.units import show_bytes
from solvers.notes import Note, SolverNote

_TRACED = "Estimates may leave out some of what kernels work in, so the first run of a session finds where values lie."
_FORETOLD = (
    "Without measured costs no model is run, so later runs of a stock session may hold more than the budget: `remat"
    " verify` tells."
)
_ESTIMATED = "The costs are estimates for a CPU. Measure them with `remat profile`."
_FROM_PAPER = "The costs are estimates from a datasheet."
_TRIVIAL = "The bound is only the time of every op once."
_TOO_LARGE = "The paper's program would be too large to build."
_IN_ORDER = "covers every schedule that first computes the ops in the order given"
_OF_RELAXATION = f"The bound is that of a linear relaxation. It {_IN_ORDER}"

SENTENCES: dict[str, str] = {
    PlanNote.ESTIMATED_AND_FORETOLD: f"{_ESTIMATED} {_FORETOLD}",
    PlanNote.ESTIMATED_AND_TRACED: f"{_ESTIMATED} {_TRACED}",
    PlanNote.FROM_PAPER_AND_FORETOLD: f"{_FROM_PAPER} {_FORETOLD}",
    PlanNote.FROM_PAPER_AND_TRACED: f"{_FROM_PAPER} {_TRACED}",
    PlanNote.SUBGRAPHS_UNKNOWN: (
        "Estimates do not know what the subgraphs of {} {!r}{} work in. `remat profile` measures it."
    ),
    PlanNote.KERNELS_UNKNOWN: (
        "Estimates do not know what {} {!r}{} works in, so a run may hold more than is promised. `remat profile`"
        " measures it."
    ),
    PlanNote.MEASURED_WHILE_BUSY: (
        "Other programs used the processors while the costs were measured (threads waited {:.0%} of the time), so times"
        " may read high. Run `remat profile` again once the machine is quieter."
    ),
    PlanNote.SEEN_IN_A_RUN: "{}",
    PlanNote.UNLIKE: "The model does not run as predicted, so the plan may not either: {}",
    PlanNote.BY_FUNCTIONS: (
        "The file as it is holds {:size} where {:size} are predicted: onnxruntime runs functions' bodies late and"
        " copies sequences. Rewritten models have neither, and hold what is predicted."
    ),
    PlanNote.WRITTEN_OUT: (
        "Some ops of this model have no kernel here, and others run in their place. The plan is of the graph with"
        " these, as --optimize disabled writes it: {}"
    ),
    PlanNote.NEEDS_TRAINING_BUILD: (
        "The plan is not verified, because only training builds of ONNX Runtime run this graph"
        " (`pip install onnxruntime-training`, for Python 3.11)."
    ),
    PlanNote.NOT_RUN: "The plan is not verified, because the original model was not run here: {}",
    PlanNote.KERNELS_UNCHECKED: (
        "ONNX Runtime cannot load the rewritten model here, or the file holds more than 1 GiB of weights. So nobody"
        " checked whether default options pick the same kernels for it."
    ),
    PlanNote.HELD_TWICE: "New state ({:size}) is held beside the old, for example {!r}: {}.",
    PlanNote.MAY_WRITE_OVER: (
        "{!r}{} could be written over the inputs of their names, which spares up to {:size}: --in-place, or"
        " in_place=True. Runs then change the arrays that are given for these inputs."
    ),
    PlanNote.WRITES_OVER: "Runs change the arrays that are given for {!r}{}: {!r} is written over them.",
    PlanNote.IN_PIECES: (
        "{} ops run in {} pieces, and the bounds are for that. With whole ops every plan needs at least {:size}."
    ),
    PlanNote.BETTER_WHOLE: "No plan with ops in pieces was found that is better than this one with whole ops.",
    PlanNote.REORDERED: (
        "The ops first run in another order than the model's, one that needs less memory. The bound is for that order."
    ),
    PlanNote.STILL_SEARCHING: "The search was still going on.",
    PlanNote.SCHEDULED_APART: (
        "Some ops that default options fuse are scheduled apart, so their results may differ in the last bits."
    ),
    PlanNote.MADE_FOR_LESS: (
        "The plan was made for less than the budget, because no plan for all of the budget could be placed in it."
    ),
    PlanNote.WALKED: (
        "The plan comes from an eviction walk, because no better plan could be placed within the budget."
    ),
    PlanNote.MET_EARLIER: (
        "The plan was found early in the search. Later ones could not be placed within the budget, or not in time."
    ),
    PlanNote.LEANEST: "The plan is the one that needs least, because no cheaper one was found within the budget.",
    PlanNote.KNOWN_BEFORE: "This plan was known before. The search found none that costs less.",
    PlanNote.MOVED: (
        "Some ops were reordered (at no cost) so that all values fit their places. The bounds were computed before"
        " that."
    ),
    PlanNote.ARRANGED: (
        "Some ops were reordered or computed again until everything has its place. The bounds were computed"
        " before that."
    ),
    PlanNote.RUN_ONCE: (
        "These ops run once, because ONNX Runtime's optimizers would treat copies of them differently: {}"
    ),
    PlanNote.OF_ANOTHER_POINT: "This is the plan of {} for {:size}.",
    PlanNote.NOT_MEASURED: (
        "The plan is made from estimates: no plan was found in time for the measured costs at this size."
    ),
    PlanNote.STAYS: (
        "{} holds a better plan for the same question ({}; this search came to {}). It stays, and this is it."
    ),
    PlanNote.STAYS_AS_GOOD: "{} held a plan for the same question that is as good. It stays, and this is it.",
    PlanNote.NO_PLAN_STOOD: "{} held something else than a plan, which is overwritten.",
    PlanNote.ANOTHER_STOOD: (
        "{} held a plan for another question ({} within {} bytes, {} session, {}, {:+.2%} time), which is overwritten."
        " With -o both can be kept."
    ),
    PlanNote.WORSE_STOOD: "{} held a plan for the same question ({}). This one ({}) takes its place.",
    PlanNote.LESS_IN_PIECES: "in pieces the least is about {}",
    PlanNote.ASTRAY: (
        "for every plan found, ONNX Runtime would pick different kernels than for the original model, around {}"
    ),
    PlanNote.UNPINNED: (
        "ONNX Runtime's optimizers might have {} written over the old values before all has read these (--no-in-place"
        " holds both)"
    ),
    PlanNote.UNTRIED: "a plan was found, but its model did not run in the time that was left: raise --time-limit",
    PlanNote.HELD_IN_ANY_CASE: "No search was needed, as inputs and weights alone are more than the budget.",
    PlanNote.HELD_AT_THE_END: (
        "inputs, weights and outputs are held together at the end of a run, whatever is fused or folded"
    ),
    PlanNote.FUSED: (
        "default options fuse ops, which then run in another order (--runtime remat does not): the model of the best"
        " plan would hold {:size}"
    ),
    PlanNote.DIFFERS_BY_DEFAULT: (
        "default options pack weights, fold constants, and lay out memory from an earlier run"
        " (--runtime remat does not): the original holds {:size}{}"
    ),
    PlanNote.DIFFERS: (
        "this model does not run as its file says (`remat profile` names why, and --optimize disabled mends it): the"
        " original holds {:size}{}"
    ),
    PlanNote.PROFILED_WHILE_BUSY: "This machine was busy (load {:.1f}), so times may read high.",
    PlanNote.PROBE_SAYS: "{}",
    PlanNote.PROFILED_UNLIKE: "The model does not run as predicted: {}",
    PlanNote.PROFILED_NOT_RUN: "The model was not run here, so nothing of it is checked: {}",
    PlanNote.PROFILED_IN_PART: (
        "Time was up before {} of {} kinds of op were measured, so they are estimated. What was measured is kept: the"
        " same command goes on from there, and --time-limit gives more."
    ),
    SolverNote.LEAST_PEAK_REACHED: "The least peak that this method reaches is {:size}.",
    SolverNote.OVER_BUDGET: "The method's schedule needs {:size} once all effects are counted.",
    SolverNote.BOUND_IN_ORDER: f"The bound {_IN_ORDER}.",
    SolverNote.BOUND_IN_OWN_ORDER: (
        "The bound covers every schedule that first computes the ops in this plan's order. `bound_any_order` covers all"
        " schedules."
    ),
    SolverNote.BOUND_IN_ANY_ORDER: "The bound covers every schedule, whatever its order of first computes.",
    SolverNote.BOUND_OF_RELAXATION: f"{_OF_RELAXATION}.",
    SolverNote.BOUND_OF_PAPER_RELAXATION: f"{_OF_RELAXATION}, none more than once between two first computes.",
    SolverNote.BOUND_OF_PAPER_FORM: (
        "The bound covers schedules of the paper's form: the ops first run in the given order, and none runs again more"
        " than {} between two first computes."
    ),
    SolverNote.BOUND_WITHOUT_STAGES: (
        "The bound covers schedules that run through all ops in the given order, as often as there are ops."
    ),
    SolverNote.RELAXATION_SIZE: "The last relaxation had {} columns at {} boundaries.",
    SolverNote.RELAXATION_UNSOLVED: "The relaxation has no solution, or none was found within the limit.",
    SolverNote.PROGRAM_TOO_LARGE: _TOO_LARGE,
    SolverNote.PAPER_PROGRAM: "This is of the paper's program, equations (1) to (8).",
    SolverNote.PROGRAM_UNSOLVED: f"The paper's program was not solved in time. {_TRIVIAL}",
    SolverNote.PROGRAM_OF_CUTS: f"{_TOO_LARGE} This is of the program of cuts in time at {{}} ops.",
    SolverNote.PROGRAM_OF_CUTS_UNSOLVED: f"{_TOO_LARGE} The program of cuts was not solved in time. {_TRIVIAL}",
    SolverNote.LINEAR_PROGRAM_TOO_LARGE: "The paper's linear program would be too large to build.",
    SolverNote.LINEAR_PROGRAM_UNSOLVED: (
        "The linear program within {:size} has no solution, or none was found within the limit."
    ),
    SolverNote.NO_PAPER_SCHEDULE: "No schedule of the paper's form fits. Others may.",
    SolverNote.ROUNDED: "Rounded at {}: time {}, peak {}.",
    SolverNote.ROUNDED_OVER: "Rounded at {}: time {}, peak {}, which is {:size} ({:.1%}) over the budget.",
    SolverNote.ROUNDED_SAMPLES: "{} samples: time {:.0f} +- {:.0f}, peak {:.0f} +- {:.0f}; {} of them fit.",
    SolverNote.LEAST_PEAK_WITHIN: "This is the least peak found at an overhead of at most {:.1%}.",
    SolverNote.ONLY_CHAINS: "The forward graph is not a chain. Use the method's ap- or linearized- form.",
    SolverNote.FEWEST_FORWARD_RUNS: (
        "The method finds the fewest forward runs for each number of snapshots, on a chain whose links cost and need"
        " the same."
    ),
    SolverNote.SOME_KEPT: "Keeping nothing takes too long, so every {}th forward op is kept.",
    SolverNote.NOTHING_BACKWARD: "No op is marked as backward, so there is nothing to cut between.",
    SolverNote.SMALLEST_CUT: "The smallest of {} schedules needs {:size}.",
    SolverNote.CHAIN: "The method sees a chain of {} stages.",
    SolverNote.CHAIN_CLASS: "{}",
    SolverNote.CHAIN_SEQUENCE: "{}",
    SolverNote.BACKWARD_GUESSED: (
        "The model does not say which ops are backward. They are taken to begin where most memory is held."
    ),
}


class _Spelled(int):
    """A whole number that is spelled as a size where a sentence has {:size}."""

    def __format__(self, how: str) -> str:
        return show_bytes(self) if how == "size" else super().__format__(how)


def sentence(note: Note) -> str:
    return SENTENCES[note.kind].format(*(_Spelled(value) if type(value) is int else value for value in note.values))


def sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    return tuple(map(sentence, notes))
