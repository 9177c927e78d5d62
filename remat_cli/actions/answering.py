"""The one operation behind the command, programs, batches and hunts: a question answered whole, within one clock.

It cuts ops where that is asked for, searches, says what pieces would bring, and proves the bounds again where a
certificate is wanted. Invariant: whoever asks, an interrupt or the end of the time gives the best plan by then; what
is left for later parts is kept from the search, and the parts together keep to the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remat_cli.actions.certifying import certify
from remat_cli.actions.pieces_asked import WHOLE, PiecesAsked
from remat_cli.actions.piecing import in_pieces, offered
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.time_plan import ENDING_SHARE, PROVING_SHARE
from remat_cli.results.memory import Memory
from solvers.problem import Limits
from solvers.proof.certificate import Certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeQuestion:
    """`cuts`: which ops may be in pieces. `offers`: where there is no plan, it is looked for what pieces would bring.
    `proving`: a certificate is wanted. `so_far`: has what is known meanwhile, and what each part took."""

    subject: Subject
    question: Question
    limits: Limits
    memory: Memory | None = None
    cuts: PiecesAsked = WHOLE
    offers: bool = True
    proving: bool = False
    so_far: SoFar = field(default_factory=SoFar)


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """`certificate`: what proves the bounds; `unproved`: what of them it does not prove, in words."""

    found: Answer
    certificate: Certificate | None = None
    unproved: tuple[str, ...] = ()


def cut_as_asked(asked: WholeQuestion) -> WholeQuestion:
    """The same, asked of the subject in its pieces, with what is known of the answer by then."""
    with asked.so_far.times.part("finding pieces"):
        cut = in_pieces(asked.subject, asked.cuts, asked.question, asked.limits, asked.so_far)
    return replace(asked, subject=cut.subject, question=cut.asked(asked.question, asked.cuts))


def answer_whole(asked: WholeQuestion) -> WholeAnswer:
    """The answer to the question, whatever it is."""
    limits, known = asked.limits, asked.so_far
    working = replace(limits, clock=limits.clock.before_ending(ENDING_SHARE))
    cut = cut_as_asked(replace(asked, limits=working))
    searching = working.share(1 - PROVING_SHARE) if asked.proving else working
    found = ask(cut.subject, cut.question, searching, asked.memory, known)
    found = replace(found, limits=limits)
    if asked.offers and not limits.clock.stopped():
        found = offered(found, working, asked.memory)
    known.found = found
    if not asked.proving:
        return WholeAnswer(found)
    with known.times.part("proving the bounds again"):
        planned = cut.subject if found.subject.pieces == cut.subject.pieces else found.subject
        certificate, unproved = certify(planned, found, cut.question.session, limits.clock)
    return WholeAnswer(found, certificate, tuple(unproved))
