"""Plans for default sessions whose kernels are the original's, whatever optimizers do.

Invariant: an answer that found a plan is of one whose model is not `astray`, and which, where the original was tried in
such a session, was tried there too and found to keep to the budget. Ops that optimizers treat differently once
they are copied, and that cannot be let be, are run once; a note names them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from remat_cli.checking import outside
from remat_cli.checking.trying import Peaks, peaks
from remat_cli.model.problem_of import as_it_stands
from remat_cli.model.sessions import Session
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.asking import Fitting, noted
from remat_cli.planning.fitting import EARLIER, fitted
from remat_cli.planning.holding import held, tried
from remat_cli.planning.pipeline import Answer
from remat_cli.planning.placing import cost, placed
from remat_cli.planning.subject import Subject
from remat_cli.planning.sure import surely
from remat_cli.rewrite import Rewritten
from solvers.plan import Plan
from solvers.problem import Limits, Status
from solvers.schedule import baseline

SHARE = 0.75  # of the time that is left, for each time that it is asked
FIRST = 0.6  # of the time, for plans of the graph that such a session runs
AS_RUN = 0.9  # of it, where what is asked is of the kernels that run, and seldom has to be asked again
STEP = 200  # the part of the budget that is asked for less, besides what was too much
NEARLY = 4  # times that what nearly fits is moved about
NEARER = 0.3  # of the time that is left, for each of them
AGAIN = 0.5  # of what a search took: with less time left there is no other
GRACE = 5.0  # seconds that trying a model may take when the limit is over: for a process to start, and two short runs
SPARE = 50  # the part of the budget that is worth another search
NAMED = 5
ONCE = "run once, since onnxruntime's optimizers would treat copies differently: {}"
BY_DEFAULT = (
    "under default options weights are packed, constants folded, and memory laid out from an earlier run"
    " (not so with --session strict)"
)
AS_SEEN = "this model does not run as it says (`remat profile` names why; with --optimize disabled it does)"
UNTRIED = "a plan was found whose model did not run in the time that was left: give it more with --time-limit"
ENDING = "whatever is fused or folded, inputs, weights and outputs are held together at the end of a run"
HOLDS = "the original holds {} bytes{}"
ASTRAY = "with every one found, onnxruntime's optimizers would make other kernels than of the original"


def fitted_and_kept(asked: Fitting) -> Answer:
    """A schedule that fits, and whose results cannot differ from the original's in the session that it is for.

    Of the graph that such a session runs first. Where that has none there may be one of the file's own ops: what is
    added for it keeps default options from folding constants, and from packing what they make of them. So whether there
    is none at all is for that question to say.
    """
    if asked.subject.plainly is None:
        return _sought(asked)
    found = _sought(replace(asked, limits=asked.limits.share(FIRST)))
    if found.found or (asked.late and found.status is not Status.INFEASIBLE):
        return replace(found, limits=asked.limits)
    return _sought(replace(asked, subject=asked.subject.own))


def _sought(asked: Fitting) -> Answer:
    return _tried(asked) if asked.subject.seen else _kept(asked, Trials())


def _tried(asked: Fitting) -> Answer:
    """One whose model was seen to hold no more than the budget, in its later runs as well."""
    trials = Trials()
    kept: list[Answer] = []  # the cheapest of what was seen to fit on the way

    def keep(found: Answer) -> None:
        if asked.fits(found):
            kept[:] = [min((*kept, found), key=cost)]
            asked.keep(replace(found, budget=asked.budget))

    def within(budget: int, way: Fitting) -> Answer:
        return _kept(replace(way, budget=budget, limits=_limits(asked), keep=keep), trials)

    def nearer(budget: int, way: Fitting, found: Answer) -> Answer | None:
        """The same with ops moved about until less is foretold, as it was seen then."""
        moved = placed(replace(way, budget=budget, limits=asked.limits.share(NEARER)), found)
        return None if moved is None else _made(moved, moved.subject, replace(way, budget=budget), trials)

    nearly: list[Answer] = []  # what was found and did not run
    for way in _ways(asked):
        found, over, budget = _down(asked, way, within, nearer)
        if found.found and over <= 0:
            found = _up(asked, way, found, budget, within)
            if not kept or cost(found) <= cost(kept[0]):
                return _for(asked, found, over)
        if kept:
            return _for(asked, noted(kept[0], EARLIER), 0)
        nearly += [found] if UNTRIED in found.schedule.result.notes else []
        if asked.late:
            break
    return _for(asked, nearly[0] if nearly else found, over)


def _limits(asked: Fitting) -> Limits:
    return asked.limits.share(AS_RUN if asked.subject.as_run else SHARE)


def _down(
    asked: Fitting,
    way: Fitting,
    within: Callable[[int, Fitting], Answer],
    nearer: Callable[[int, Fitting, Answer], Answer | None],
) -> tuple[Answer, int, int]:
    """What a plan's model was seen to hold too much is taken off the budget that the next is made for: of the same
    computes, as far as that goes."""
    budget = way.budget
    while True:
        begun, found = asked.limits.clock.elapsed(), within(budget, way)
        took = asked.limits.clock.elapsed() - begun
        over = asked.counted(found) - asked.budget if found.found else 0
        other: Answer | None = found
        for _ in range(NEARLY if found.found else 0):
            if over <= 0 or asked.late:
                return found, over, budget
            budget -= over + asked.budget // STEP
            other = nearer(budget, way, found)
            if other is None:
                break
            found, over = other, asked.counted(other) - asked.budget
        if over <= 0 or asked.late or asked.limits.clock.left() < AGAIN * took:
            return found, over, budget
        budget -= 0 if other is None else over + asked.budget // STEP


def _up(asked: Fitting, way: Fitting, found: Answer, budget: int, within: Callable[[int, Fitting], Answer]) -> Answer:
    """What it was seen not to need, a cheaper one may."""
    took = asked.limits.clock.elapsed()
    while (spare := asked.budget - asked.counted(found)) > asked.budget // SPARE and not asked.late:
        if asked.limits.clock.left() < AGAIN * took:
            break
        budget += spare
        other = within(budget, way)
        if not other.found or not asked.fits(other) or cost(other) >= cost(found):
            break
        found = other
    return found


def _ways(asked: Fitting) -> Iterator[Fitting]:
    """The question as later runs of a default session would have it, and as the first does; before either, for as much
    less as the original holds more than is reckoned with: packed weights, folded constants, memory that waits."""
    if asked.subject.as_run:
        yield replace(asked, apart=True)  # what later runs hold is foretold
        return
    for way in (replace(asked, apart=True), asked) if asked.session.robust else (asked,):
        unknown = max(0, -_not_held(way))
        if unknown and asked.budget - unknown > asked.subject.problem.resident:
            yield replace(way, budget=asked.budget - unknown)
        yield foreseen(way)


def foreseen(asked: Fitting) -> Fitting:
    """With a larger budget where the original holds less than is reckoned with: what is fused is not held."""
    return replace(asked, budget=asked.budget + max(0, _not_held(asked)))


def _not_held(asked: Fitting) -> int:
    """How much less the original was seen to hold than is reckoned with, where its plans can be expected to do so too:
    of kernels that run as they stand, a plan is foretold better than the original's own order."""
    if asked.subject.seen is None or asked.subject.as_run:
        return 0
    return baseline(as_it_stands(asked.taken(asked.subject.problem)))[1].peak - max(asked.subject.seen)


def _for(asked: Fitting, found: Answer, over: int) -> Answer:
    """The answer as one for the budget itself; no plan if it is over. What the search proved is of what is reckoned
    with, and not told; what is held at the end of every run is no less than that, whatever optimizers do.
    """
    kept = found.found and over <= 0
    notes, least = found.schedule.result.notes, at_the_end(asked.subject)
    if least > asked.budget:
        notes = (*notes, ENDING)
    elif not kept and UNTRIED not in notes:
        held = f", and the model of the best plan {asked.budget + over}" if over > 0 else ""
        notes = (*notes, _more(asked, held))
    missed = Status.INFEASIBLE if least > asked.budget else Status.UNKNOWN
    result = replace(found.schedule.result, status=Status.FEASIBLE if kept else missed, notes=notes)
    result = replace(result, bound=None, bound_any_order=None, grounds=())
    result = replace(result, peak_bound=least, peak_node=None, peak_values=())
    found = replace(found, schedule=replace(found.schedule, result=result))
    return replace(found, budget=asked.budget, limits=asked.limits, seconds=asked.limits.clock.elapsed())


def at_the_end(subject: Subject) -> int:
    """What any model of the graph holds when a run ends, in any session: what is outside of the arena, and outputs."""
    assert subject.graph is not None
    problem = subject.problem
    return outside(subject.graph) + sum(problem.sizes[value] for value in set(problem.outputs))


def _more(asked: Fitting, besides: str) -> str:
    """Why there is none, where what the original holds is not as reckoned."""
    assert asked.subject.seen is not None
    return f"{BY_DEFAULT if asked.session.robust else AS_SEEN}: {HOLDS.format(max(asked.subject.seen), besides)}"


def _kept(asked: Fitting, trials: Trials) -> Answer:
    if asked.subject.kernels is None and not asked.subject.seen:
        return fitted(asked)
    subject, once = asked.subject, set[str]()

    def keep(found: Answer) -> None:
        made = _made(found, subject, asked, trials)
        if made is not None:
            asked.keep(replace(made, subject=subject))

    while True:
        now = replace(asked, subject=running_once(subject, once), limits=_limits(asked), keep=keep)
        found = fitted(now)
        if not found.found or found.schedule.plan is None:
            return _told(found, subject, once)
        model = trials.model(subject, found, asked.session)
        if (made := _as_made(found, model, asked)) is not None:
            ran = _seen(made, model, asked, trials)
            return _told(ran, subject, once) if ran else _given_up(found, UNTRIED)
        around = model.astray or model.bare
        if now.late or len(once) == len(subject.nodes):
            return _given_up(found, f"{ASTRAY}, around {_names(around)}")
        once = more_once(subject, around, once)


def kept(found: Answer, asked: Fitting) -> Answer | None:
    """The answer as its model is made for the session, if that fits and keeps the original's kernels."""
    foretold = foreseen(asked)
    fitting = placed(foretold, found)
    if fitting is None or fitting.schedule.plan is None or not (asked.subject.kernels or asked.subject.seen):
        return fitting
    made = _made(fitting, fitting.subject, foretold, Trials())
    return replace(made, budget=asked.budget) if made is not None and asked.fits(made) else None


def _made(found: Answer, subject: Subject, asked: Fitting, trials: Trials) -> Answer | None:
    """As its model is made, and was seen to be; None if it does not fit or does not run."""
    assert found.schedule.plan is not None
    model = trials.model(subject, found, asked.session)
    made = _as_made(found, model, asked)
    return None if made is None else _seen(made, model, asked, trials)


def _as_made(found: Answer, model: Rewritten, asked: Fitting) -> Answer | None:
    """As it is foretold, if that fits and its kernels are the original's."""
    if model.astray:
        return None
    if model.bare:  # what is let be is held as optimizers and the runtime's planner will have it
        figures = held(asked.session, model, asked.subject.aside(asked.session), asked.budget)
        found = replace(found, promise=figures.promise, placement=figures.placement)
    return found if asked.fits(found) else None


def _seen(found: Answer, model: Rewritten, asked: Fitting, trials: Trials) -> Answer | None:
    """With what its model was seen to hold, where models are tried; None if it does not run in the time left."""
    if not asked.subject.seen:
        return found
    assert found.promise is not None
    held = trials.peaks(found, model, asked)
    return None if held is None else replace(found, promise=tried(asked.session, found.promise, held))


class Trials:
    """The models of plans, as they were made for one kind of session and seen to run in it: each once."""

    def __init__(self) -> None:
        self._models: dict[tuple[Plan, int], Rewritten] = {}
        self._peaks: dict[tuple[Plan, int], Peaks] = {}

    def model(self, subject: Subject, found: Answer, session: Session) -> Rewritten:
        plan, hiding = which = _model_of(found)
        if which not in self._models:
            self._models[which] = surely(subject, plan, session, hiding)
        return self._models[which]

    def peaks(self, found: Answer, model: Rewritten, asked: Fitting) -> Peaks | None:
        graph, which, seconds = found.subject.graph, _model_of(found), max(asked.limits.clock.left(), GRACE)
        assert graph is not None
        if which not in self._peaks:
            feeds = feeds_of(graph, ops_of(graph))
            held = peaks(graph, model.model, feeds, found.subject.threads, seconds, asked.session)
            if held is None:
                return None
            self._peaks[which] = held
        return self._peaks[which]


def _model_of(found: Answer) -> tuple[Plan, int]:
    """What says which model it is."""
    assert found.schedule.plan is not None
    return found.schedule.plan, (found.promise.hiding if found.promise else None) or 0


def _given_up(found: Answer, why: str) -> Answer:
    result = found.schedule.result
    result = replace(result, status=Status.UNKNOWN, notes=(*result.notes, why))
    return replace(found, schedule=replace(found.schedule, result=result))


def more_once(subject: Subject, values: Collection[str], once: Collection[str]) -> set[str]:
    """These ops, and those that make any of the values; where they are there already, all around them as well."""
    assert subject.graph is not None
    wanted = set(values)
    found = {op.name for op in subject.graph.ops if wanted.intersection((*op.writes, *op.reads))}
    if not found <= set(once):
        return found.union(once)
    near = {name for op in subject.graph.ops if op.name in found.union(once) for name in (*op.reads, *op.writes)}
    wider = {op.name for op in subject.graph.ops if near.intersection((*op.reads, *op.writes))}
    return wider if found and not wider <= set(once) else set(subject.nodes)


def running_once(subject: Subject, once: Collection[str]) -> Subject:
    named = zip(subject.nodes, subject.problem.nodes, strict=True)
    nodes = tuple(replace(node, once=node.once or name in once) for name, node in named)
    return subject.solving(replace(subject.problem, nodes=nodes))


def _told(found: Answer, subject: Subject, once: Collection[str]) -> Answer:
    """The answer as one of the subject that was asked about."""
    if not once:
        return found
    result = found.schedule.result
    result = replace(result, notes=(*result.notes, ONCE.format(_names(once))))
    return replace(found, subject=subject, schedule=replace(found.schedule, result=result))


def _names(found: Collection[str]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(sorted(found)[:NAMED]) + more
