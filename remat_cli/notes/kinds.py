"""The kinds of note that planning and profiling make; the kinds that solvers make are in `solvers.notes`."""

from __future__ import annotations

from enum import StrEnum

from solvers.notes import SolverNote


class PlanNote(StrEnum):
    # about the costs, and about the model
    ESTIMATED_AND_FORETOLD = "estimated and foretold"
    ESTIMATED_AND_TRACED = "estimated and traced"
    FROM_PAPER_AND_FORETOLD = "from paper and foretold"
    FROM_PAPER_AND_TRACED = "from paper and traced"
    SUBGRAPHS_UNKNOWN = "subgraphs unknown"
    KERNELS_UNKNOWN = "kernels unknown"
    MEASURED_WHILE_BUSY = "measured while busy"
    SEEN_IN_A_RUN = "seen in a run"
    UNLIKE = "unlike"
    BY_FUNCTIONS = "by functions"
    WRITTEN_OUT = "written out"
    NEEDS_TRAINING_BUILD = "needs training build"
    NOT_RUN = "not run"
    KERNELS_UNCHECKED = "kernels unchecked"
    HELD_TWICE = "held twice"
    MAY_WRITE_OVER = "may write over"
    WRITES_OVER = "writes over"
    IN_PIECES = "in pieces"
    BETTER_WHOLE = "better whole"
    # about how a plan was found
    REORDERED = "reordered"
    STILL_SEARCHING = "still searching"
    SCHEDULED_APART = "scheduled apart"
    MADE_FOR_LESS = "made for less"
    WALKED = "walked"
    MET_EARLIER = "met earlier"
    LEANEST = "leanest"
    KNOWN_BEFORE = "known before"
    MOVED = "moved"
    ARRANGED = "arranged"
    RUN_ONCE = "run once"
    OF_ANOTHER_POINT = "of another point"
    NOT_MEASURED = "not measured"
    # about the file that a plan is written to
    STAYS = "stays"
    STAYS_AS_GOOD = "stays, as good"
    NO_PLAN_STOOD = "no plan stood"
    ANOTHER_STOOD = "another stood"
    WORSE_STOOD = "worse stood"
    # about why there is no plan
    LESS_IN_PIECES = "less in pieces"
    ASTRAY = "astray"
    UNPINNED = "unpinned"
    UNTRIED = "untried"
    FUSED = "fused"
    HELD_IN_ANY_CASE = "held in any case"
    HELD_AT_THE_END = "held at the end"
    DIFFERS_BY_DEFAULT = "differs by default"
    DIFFERS = "differs"
    # about profiling
    PROFILED_WHILE_BUSY = "profiled while busy"
    PROBE_SAYS = "probe says"
    PROFILED_UNLIKE = "profiled, unlike"
    PROFILED_NOT_RUN = "profiled, not run"
    PROFILED_IN_PART = "profiled in part"


# notes about one plan that stood in the place of the new one; the next plan replaces them
STAYING = frozenset((PlanNote.STAYS, PlanNote.STAYS_AS_GOOD))
OF_ANY_MODEL = frozenset(  # notes about any model, those that fit without a plan included
    (
        PlanNote.UNLIKE,
        PlanNote.BY_FUNCTIONS,
        PlanNote.WRITTEN_OUT,
        PlanNote.NEEDS_TRAINING_BUILD,
        PlanNote.NOT_RUN,
        PlanNote.SUBGRAPHS_UNKNOWN,
        PlanNote.KERNELS_UNKNOWN,
        PlanNote.SEEN_IN_A_RUN,
        PlanNote.WRITES_OVER,
    )
)
WHY_NONE = frozenset(  # notes that give the reason why there is no plan
    (
        PlanNote.ASTRAY,
        PlanNote.UNPINNED,
        PlanNote.UNTRIED,
        PlanNote.HELD_AT_THE_END,
        PlanNote.DIFFERS_BY_DEFAULT,
        PlanNote.DIFFERS,
    )
)
ROUTINE = frozenset(  # notes about how an ordinary answer came about: `-v` prints them, and `--json` has them
    (
        PlanNote.MEASURED_WHILE_BUSY,  # `profile` has said so already
        PlanNote.MOVED,
        PlanNote.ARRANGED,
        PlanNote.MET_EARLIER,
        PlanNote.STILL_SEARCHING,
        SolverNote.BOUND_IN_ORDER,
        SolverNote.BOUND_IN_OWN_ORDER,
        SolverNote.BOUND_IN_ANY_ORDER,
        SolverNote.RELAXATION_SIZE,
    )
)
