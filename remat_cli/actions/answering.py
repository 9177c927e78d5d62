"""The one operation behind the command, programs, batches and hunts: a question answered whole, within one clock.

It cuts ops where that is asked for, searches, says what pieces would bring, and proves the bounds again where a
certificate is wanted. Invariant: whoever asks, an interrupt or the end of the time gives the best plan by then; what
is left for later parts is kept from the search, and the parts together keep to the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from remat_cli.actions.certifying import certify
from remat_cli.actions.pieces_asked import WHOLE, PiecesAsked
from remat_cli.actions.piecing import in_pieces, offered
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.request import ignore
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.time_plan import ENDING_SHARE, PROVING_SHARE, PartTimes
from remat_cli.results.memory import Memory
from solvers.problem import Limits
from solvers.proof.certificate import Certificate


def _unheard(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who hears how an answer comes about, besides `limits.report`.

    `begins`: no answer was at hand, so from here on the clock decides. `asks`: the subject in its pieces, and the
    question with what is known by now. `keep`: a plan that fits as it really runs, or a proved no, while the search
    goes on. `found`: the answer, of which only the proof follows.
    """

    begins: Callable[[], None] = _unheard
    asks: Callable[[Subject, Question], None] = _unheard
    keep: Callable[[Answer], None] = ignore
    found: Callable[[Answer], None] = _unheard


NOBODY = Listener()


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeQuestion:
    """`cuts`: which ops may be in pieces. `offers`: where there is no plan, it is looked for what pieces would bring.
    `proving`: a certificate is wanted. `times`: where each part's time is noted."""

    subject: Subject
    question: Question
    limits: Limits
    memory: Memory | None = None
    cuts: PiecesAsked = WHOLE
    offers: bool = True
    proving: bool = False
    times: PartTimes = field(default_factory=PartTimes)


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """`certificate`: what proves the bounds; `unproved`: what of them it does not prove, in words."""

    found: Answer
    certificate: Certificate | None = None
    unproved: tuple[str, ...] = ()


def cut_as_asked(asked: WholeQuestion, hears: Listener = NOBODY) -> WholeQuestion:
    """The same, asked of the subject in its pieces, with what is known of the answer by then."""
    with asked.times.part("finding pieces"):
        cut = in_pieces(asked.subject, asked.cuts, asked.question, asked.limits, hears.begins)
    return replace(asked, subject=cut.subject, question=cut.asked(asked.question, asked.cuts))


def answer_whole(asked: WholeQuestion, hears: Listener = NOBODY) -> WholeAnswer:
    """The answer to the question, whatever it is."""
    limits, times = asked.limits, asked.times
    working = replace(limits, clock=limits.clock.before_ending(ENDING_SHARE))
    cut = cut_as_asked(replace(asked, limits=working), hears)
    subject, question = cut.subject, cut.question
    hears.asks(subject, question)
    searching = working.share(1 - PROVING_SHARE) if asked.proving else working
    found = ask(subject, question, searching, asked.memory, hears.keep, times, begin=hears.begins)
    found = replace(found, limits=limits)
    if asked.offers:
        found = offered(found, working, asked.memory)
    hears.found(found)
    if not asked.proving:
        return WholeAnswer(found)
    with times.part("proving the bounds again"):
        planned = subject if found.subject.pieces == subject.pieces else found.subject
        certificate, unproved = certify(planned, found, question.session, limits.clock)
    return WholeAnswer(found, certificate, tuple(unproved))
