"""The one clock: made where a command begins, handed down to whatever takes time.

A limit may be in work instead of seconds, which is the same on every machine. Work is counted in moves of local
search; iterations, nodes and states of other searches are converted into moves. A search counts its work at the end of
each step, by a counter of its `own`; where work is limited nobody else counts meanwhile. Work that is used up lets no
further step begin (`over`), but it never ends a step that is under way (`interrupts`): how far a step had come by then
would depend on the machine.

Invariant: a clock made from another hears the same stop and never ends later than it does, unless by `again` or
`at_least`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic

FOREVER_SECONDS = 1e9
USUAL_SECONDS = 60.0  # where nothing is said
ITERATION_MOVES = 250  # moves that take about as long as an iteration of the simplex method in a search tree
LINEAR_MOVES, LINEAR_SIZE = 5, 400  # as one on a linear program alone: so many, and one for so many rows and columns
BEGUN_MOVES = 1  # as each of these when it is solved anew
COLUMN_MOVES = 4  # as posing a column of a program
NODE_MOVES = 1000  # as a node of a search tree
STATE_MOVES = 20  # as a state of a search through what can be held
WALKED_MOVES = 1  # as a compute of an eviction walk, or one of what it reads
WRITTEN_MOVES = 40  # as writing a compute of a plan into a model
LOOKS = 30  # at what such a walk would have to rebuild, that take as long as a move


def _never() -> bool:
    return False


def _now() -> float:
    return monotonic()


@dataclass(slots=True)
class Work:
    """What has been done so far, in moves. `whole`: of which it is a part."""

    spent: int = 0
    whole: Work | None = None
    under_way: int = 0  # at least so much of a step counts when it ends, besides

    @property
    def known(self) -> int:
        """What has been done at least, a step that is under way included."""
        return self.spent + self.under_way

    def see(self, moves: int) -> None:
        """So much of a step that is under way is done."""
        self.under_way = moves
        if self.whole is not None:
            self.whole.see(moves)

    def add(self, moves: int) -> None:
        self.spent += moves
        if self.whole is not None:
            self.whole.add(moves)


@dataclass(frozen=True, slots=True)
class Clock:
    """Runs from when it is made for so many seconds; `stopped` says that somebody has had enough."""

    seconds: float = USUAL_SECONDS
    stopped: Callable[[], bool] = _never
    begun: float = field(default_factory=_now)
    work: Work = field(default_factory=Work)
    most: int | None = None  # of it, if it is limited
    enough: Callable[[], bool] = _never  # says that no further step need begin

    def elapsed(self) -> float:
        return monotonic() - self.begun

    def left(self) -> float:
        return max(0.0, self.seconds - self.elapsed())

    def over(self) -> bool:
        """Whether no further step may begin."""
        return self.interrupts() or self.worn() or self.enough()

    def interrupts(self) -> bool:
        """Whether a step that is under way must end at once: time is up, or somebody has had enough."""
        return self.elapsed() >= self.seconds or self.stopped()

    def spent(self) -> bool:
        """Whether it ran out by itself, of time or of work."""
        return self.elapsed() >= self.seconds or self.worn()

    def worn(self) -> bool:
        """Whether as much work was done as may be."""
        return self.most is not None and self.work.spent >= self.most

    def spend(
        self,
        moves: int = 0,
        iterations: int = 0,
        nodes: int = 0,
        states: int = 0,
        walked: int = 0,
        looks: int = 0,
        columns: int = 0,
        linear: tuple[int, int] = (0, 0),
    ) -> int:
        """Count work that was done, whatever the time it took; gives it back in moves. `linear`: iterations on a linear
        program, and its rows and columns."""
        moves += ITERATION_MOVES * iterations + NODE_MOVES * nodes + STATE_MOVES * states
        moves += WALKED_MOVES * walked + looks // LOOKS
        iterations, size = linear
        moves += COLUMN_MOVES * columns + BEGUN_MOVES * size + iterations * _moves_of_one(size)
        self.work.add(moves)
        return moves

    @contextmanager
    def at_work(self, moves: int) -> Iterator[None]:
        """Count work of which is known before how much it is."""
        self.work.see(moves)
        try:
            yield
        finally:
            self.work.see(0)
            self.spend(moves)

    def iterations(self) -> int | None:
        """How many of the simplex method there is work left for, if it is limited."""
        return None if self.most is None else max(1, (self.most - self.work.spent) // ITERATION_MOVES)

    def linear_iterations(self, size: int) -> int | None:
        """How many on a linear program alone, of so many rows and columns."""
        return None if self.most is None else max(1, (self.most - self.work.spent - size) // _moves_of_one(size))

    def states(self) -> int | None:
        """How many states there is work left to look at, if it is limited."""
        return None if self.most is None else max(1, (self.most - self.work.spent) // STATE_MOVES)

    def again(self) -> Clock:
        """From now on for all that it had in the beginning."""
        return replace(self, begun=monotonic(), work=Work())

    def at_least(self, part: float) -> Clock:
        """To the end of this clock, or from now on for that part of its seconds where that is longer: what came before
        and could not be interrupted leaves so much to what comes after it."""
        seconds = self.seconds * part
        return self if self.left() >= seconds else replace(self, begun=monotonic(), seconds=seconds)

    def before_ending(self, part: float) -> Clock:
        """From now on, but ended earlier by that part of what went by so far: what comes after takes its time too, and
        the longer the busier this machine is."""
        return self.within(self.left() - part * self.elapsed())

    def timed(self) -> Clock:
        """The same without a limit of work: for what goes on beside the work that is counted. Whether that is enough by
        now is not its concern: it would hear of it at any moment."""
        return replace(self, work=Work(), most=None, enough=_never)

    def in_turns(self, work: Work, most: int | None) -> Clock:
        """To the end of this clock, but its shares are of so much work alone: for what goes on in turns with something
        else, which seconds go by for while it waits."""
        return Clock(FOREVER_SECONDS, self.interrupts, work=work, most=most)

    def within(self, seconds: float) -> Clock:
        """From now on for so many seconds, or to the end of this clock if that comes first."""
        return replace(self, seconds=max(0.0, min(seconds, self.left())), begun=monotonic())

    def share(self, part: float) -> Clock:
        """From now on for that part of what is left."""
        clock = self.within(self.left() * part)
        if self.most is None:
            return clock
        return replace(clock, most=self.work.spent + int(max(0, self.most - self.work.spent) * part))

    def allot(self, part: float, least: int = 0) -> Clock:
        """From now on for that part of what is left, by a counter of its own. Work counts as done at once, so that
        running over takes nothing from others. `least`: so much work there is, though none may be left, or as much as
        the limit has."""
        clock = self.share(part)
        if self.most is None or clock.most is None:
            return clock
        moves = max(0, clock.most - self.work.spent)
        self.spend(moves=moves)
        return replace(clock, work=Work(), most=max(moves, min(self.most, least)))

    def own(self) -> Clock:
        """The same clock with a counter of what is done from now on, which counts here too."""
        most = None if self.most is None else self.most - self.work.spent
        return replace(self, work=Work(whole=self.work), most=most)

    def apart(self, part: float) -> Clock:
        """With a counter of its own for that part of all the work: what others do meanwhile is not counted."""
        return self if self.most is None else replace(self, work=Work(), most=int(self.most * part))

    def until(self, enough: Callable[[], bool]) -> Clock:
        """This clock, under which no step begins once that is so. Where work is limited a step that is under way is not
        interrupted: how far it had come would depend on the machine."""
        if self.most is None:
            return self.unless(enough)
        before = self.enough
        return replace(self, enough=lambda: before() or enough())

    def unless(self, stopped: Callable[[], bool]) -> Clock:
        """This clock, which hears one more stop."""
        before = self.stopped
        return replace(self, stopped=lambda: before() or stopped())


def _moves_of_one(size: int) -> int:
    """An iteration on a linear program alone, of so many rows and columns."""
    return LINEAR_MOVES + size // LINEAR_SIZE


def limited(seconds: float | None = None, moves: int | None = None) -> Clock:
    """Limited in time, in work or in both."""
    if moves is None:
        return Clock(USUAL_SECONDS if seconds is None else seconds)
    return Clock(FOREVER_SECONDS if seconds is None else seconds, work=Work(), most=moves)
