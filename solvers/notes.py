"""What a solver says of its answer besides figures: typed, so that programs branch on kinds and words are made last.

Invariant: a note holds no words of its own but names and numbers that its kind's sentence has places for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SolverNote(StrEnum):
    """The kinds of note that methods make; `remat_cli.notes.words` has their sentences."""

    LEAST_PEAK_REACHED = "least peak reached"
    OVER_BUDGET = "over budget"
    BOUND_IN_ORDER = "bound in order"
    BOUND_IN_OWN_ORDER = "bound in own order"
    BOUND_IN_ANY_ORDER = "bound in any order"
    BOUND_OF_RELAXATION = "bound of relaxation"
    BOUND_OF_PAPER_RELAXATION = "bound of paper relaxation"
    BOUND_OF_PAPER_FORM = "bound of paper form"
    BOUND_WITHOUT_STAGES = "bound without stages"
    RELAXATION_SIZE = "relaxation size"
    RELAXATION_UNSOLVED = "relaxation unsolved"
    PROGRAM_TOO_LARGE = "program too large"
    PAPER_PROGRAM = "paper program"
    PROGRAM_UNSOLVED = "program unsolved"
    PROGRAM_OF_CUTS = "program of cuts"
    PROGRAM_OF_CUTS_UNSOLVED = "program of cuts unsolved"
    LINEAR_PROGRAM_TOO_LARGE = "linear program too large"
    LINEAR_PROGRAM_UNSOLVED = "linear program unsolved"
    NO_PAPER_SCHEDULE = "no paper schedule"
    ROUNDED = "rounded"
    ROUNDED_OVER = "rounded over"
    ROUNDED_SAMPLES = "rounded samples"
    LEAST_PEAK_WITHIN = "least peak within"
    ONLY_CHAINS = "only chains"
    FEWEST_FORWARD_RUNS = "fewest forward runs"
    SOME_KEPT = "some kept"
    NOTHING_BACKWARD = "nothing backward"
    SMALLEST_CUT = "smallest cut"
    CHAIN = "chain"
    CHAIN_CLASS = "chain class"
    CHAIN_SEQUENCE = "chain sequence"
    BACKWARD_GUESSED = "backward guessed"


@dataclass(frozen=True, slots=True)
class Note:
    """`values`: what the sentence of its kind has places for, in their order."""

    kind: str
    values: tuple[str | int | float, ...] = ()
