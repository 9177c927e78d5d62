"""A chain of stages, the sequences that can be run over it, and what such a sequence costs and needs.

Notation of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova, "Optimal Re-materialization Strategies for
Heterogeneous Chains" (Table 1): stages are 1..n, the last one being the loss; a^l is what stage l hands on, ā^l all
that its backward needs and a^l with it, δ^l the gradient of a^l.

Invariant: `simulate` shares no code with the programs that make sequences, and believes nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class StageOp(Enum):
    CHECK = "F_ck"  # run the stage, keep its input and hand on its output
    EMPTY = "F_0"  # run the stage, give up its input
    ALL = "F_all"  # run the stage, keep all that its backward reads
    BACK = "B"


@dataclass(frozen=True, slots=True)
class ChainStep:
    op: StageOp
    stage: int  # 1..n
    way: int = 0  # which of the stage's ways to run it, where it has several

    def __str__(self) -> str:
        return f"{self.op.value}^{self.stage}" + (f"[{self.way}]" if self.way else "")


@dataclass(frozen=True, slots=True)
class Chain:
    """Indices are the paper's: `a`, `abar`, `delta` run from 0 to n (abar[0] means nothing), the others from 1.

    Entry 0 of the per-stage tuples is there only to keep the paper's numbers, and is 0.
    """

    forward: tuple[float, ...]  # u_f
    backward: tuple[float, ...]  # u_b
    a: tuple[float, ...]
    abar: tuple[float, ...]
    o_f: tuple[float, ...]  # memory needed only while F runs
    o_b: tuple[float, ...]  # the same for B
    delta: tuple[float, ...]

    @property
    def length(self) -> int:
        return len(self.forward) - 1

    @property
    def once(self) -> float:
        """The time of everything run once."""
        return sum(self.forward) + sum(self.backward)


def chain(
    forward: Sequence[float],
    backward: Sequence[float],
    a: Sequence[float],
    abar: Sequence[float],
    o_f: Sequence[float],
    o_b: Sequence[float],
) -> Chain:
    """A chain as the paper writes it: stages 1..L have a forward, 1..L+1 a backward (L+1 is the loss); δ^l is like a^l.

    `a` and `abar` run from 0 to L, the rest from 1.
    """
    length = len(forward)
    if not len(backward) == len(a) == len(abar) == len(o_b) == length + 1 or len(o_f) != length:
        raise ValueError("a chain of L stages has L forwards and overheads, and L + 1 of everything else")
    return Chain(
        forward=(0, *forward, 0),
        backward=(0, *backward),
        a=(*a, 0),
        abar=(*abar, 0),
        o_f=(0, *o_f, 0),
        o_b=(0, *o_b),
        delta=(*a, 0),
    )


class IllegalSequence(ValueError):
    """A sequence that could not be run; the message names the step."""


@dataclass(frozen=True, slots=True)
class ChainRun:
    makespan: float
    peak: float


def simulate(chain: Chain, sequence: Sequence[ChainStep]) -> ChainRun:
    """Run the sequence on paper: every step's inputs must be there, and every stage must end differentiated."""
    last = chain.length
    held = {0}  # l: a^l is held by itself
    full: set[int] = set()  # l: ā^l is held
    gradient = last  # δ^l is held
    peak, makespan = (used := chain.a[0] + chain.delta[last]), 0.0
    for place, step in enumerate(sequence):
        stage = step.stage
        if not 1 <= stage <= last or (stage - 1 not in held and stage - 1 not in full):
            raise IllegalSequence(f"step {place}, {step}: its input is not held")
        if step.op is StageOp.BACK:
            if stage not in full or gradient != stage:
                raise IllegalSequence(f"step {place}, {step}: its gradient or activations are not held")
            makespan += chain.backward[stage]
            peak = max(peak, used + chain.delta[stage - 1] + chain.o_b[stage])
            full.discard(stage)
            used += chain.delta[stage - 1] - chain.delta[stage] - chain.abar[stage]
            for spent in held & {stage, stage - 1}:
                held.discard(spent)
                used -= chain.a[spent]
            gradient = stage - 1
            continue
        makespan += chain.forward[stage]
        if stage > gradient:
            raise IllegalSequence(f"step {place}, {step}: already differentiated")
        kept, size = (full, chain.abar[stage]) if step.op is StageOp.ALL else (held, chain.a[stage])
        if stage in kept:
            raise IllegalSequence(f"step {place}, {step}: its result is already held")
        kept.add(stage)
        used += size
        peak = max(peak, used + chain.o_f[stage])
        if step.op is StageOp.EMPTY:
            if stage - 1 not in held:
                raise IllegalSequence(f"step {place}, {step}: its input is not its own to give up")
            held.discard(stage - 1)
            used -= chain.a[stage - 1]
    if gradient:
        raise IllegalSequence(f"the sequence ends before stage {gradient} is differentiated")
    return ChainRun(makespan, peak)


def written(sequence: Sequence[ChainStep]) -> str:
    """The sequence in the paper's notation."""
    return " ".join(map(str, sequence))
