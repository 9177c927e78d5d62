"""The useful ways of running one stage: for each amount of memory kept, the least time.

This is the idea of Rockmate (Zhao, Le Hellard, Eyraud-Dubois, Gusak and Beaumont, ICML 2023) and HiRemate. Each
distinct stage is solved exactly by itself, and a dynamic program over the chain chooses among the answers. Stages with
the same structure are solved once.

Invariant: the first way keeps everything that the backward reads; each later one keeps less and takes longer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations

from solvers import scip
from solvers.clock import Clock
from solvers.methods.chains.stage import Runner, StageWay

MOST_WAYS, LEAST_WAYS = 16, 5
_PROGRAMS = 60  # programs for one chain, about: the more distinct stages there are, the fewer ways each gets
_FEW = 6  # with so few values, each choice of them is tried
_NODES = 500  # nodes of the search tree for one program; a time limit would make answers depend on the machine


def all_ways(runners: Sequence[Runner], clock: Clock) -> tuple[tuple[StageWay, ...], ...]:
    """The ways of each stage; once the clock is over, only the way that keeps everything."""
    shapes = [structure(runner) for runner in runners]
    first = {key: (runner, values) for runner, (key, values) in zip(runners, shapes, strict=True)}
    count = max(LEAST_WAYS, min(MOST_WAYS, _PROGRAMS // len(first)))
    known: dict[Hashable, list[frozenset[int]]] = {}
    for key, (runner, values) in first.items():
        place = {value: index for index, value in enumerate(values)}
        known[key] = [frozenset(place[value] for value in keep) for keep in pareto(runner, count, clock)]
    return tuple(
        tuple(drop_dominated([runner.way({values[index] for index in keep}) for keep in known[key]]))
        for runner, (key, values) in zip(runners, shapes, strict=True)
    )


def structure(runner: Runner) -> tuple[Hashable, list[int]]:
    """A key that is the same for two stages that `pareto` solves alike, and the stage's values in an order that maps
    one to the other."""
    problem, stage = runner.problem, runner.stage
    place: dict[int, int] = {}
    rows = []
    for index in (*stage.forward, *stage.backward):
        node = problem.nodes[index]
        for value in (*node.reads, *node.writes):
            place.setdefault(value, len(place))
        rows.append((node.cost, tuple(map(place.__getitem__, node.reads)), tuple(map(place.__getitem__, node.writes))))
    flags = tuple((problem.sizes[v], v in runner.pinned, v in stage.input, v in stage.output) for v in place)
    return (len(stage.forward), tuple(rows), flags), list(place)


def drop_dominated(ways: Sequence[StageWay]) -> list[StageWay]:
    """The ways from most kept to least, without those that are no better in time nor in any memory."""
    best: list[StageWay] = []
    for way in sorted(set(ways), key=lambda way: (way.time, way.kept, way.forward, way.backward)):
        if not any(_no_worse(other, way) for other in best):
            best.append(way)
    return best


def _no_worse(one: StageWay, other: StageWay) -> bool:
    """Whether one way takes no more memory, whatever the stages around it do; a kept output is counted in `kept`."""
    less = one.kept <= other.kept and one.forward <= other.forward and one.backward <= other.backward
    return less and one.loose >= other.loose


def pareto(runner: Runner, count: int, clock: Clock) -> list[frozenset[int]]:
    """The sets to keep, from everything to nothing: the least time for each of some budgets, or each choice if few."""
    everything = runner.wanted()
    values = sorted(_makeable(runner))
    if len(values) <= _FEW:
        return [everything, *(frozenset(some) for many in range(len(values)) for some in combinations(values, many))]
    most = runner.bytes(everything - runner.output)
    found = [everything]
    for step in reversed(range(count)):
        if clock.over():
            break
        budget = most * step // count
        if runner.bytes(found[-1] - runner.output) > budget:  # otherwise it is the best for this budget too
            found.append(least_time(runner, budget, clock) if budget else frozenset())
    return found


def _makeable(runner: Runner) -> list[int]:
    """The values that a stage may keep or make again, its output aside."""
    members = runner.closure(runner.wanted() | runner.output, runner.given)
    made = [value for index in members for value in runner.problem.nodes[index].writes]
    return [value for value in made if value not in runner.given and value not in runner.output]


def least_time(runner: Runner, budget: int, clock: Clock) -> frozenset[int]:
    """The set to keep within `budget` bytes, without the output, for which forward and backward together take least
    time.

    k_v: value v is kept. f_n, r_n: node n runs in the forward, in the backward. Each value that the backward reads is
    kept or made again; a node made again has its reads kept or made again; a kept value was made in the forward.
    """
    nodes, output = runner.problem.nodes, runner.output
    members = runner.closure(runner.wanted() | output, runner.given)
    walk = set(runner.walk())
    program = scip.Program()
    scale = max((nodes[n].cost for n in members), default=1) or 1
    again = {n: program.variable(nodes[n].cost / scale) for n in members}
    there = {n: program.variable(nodes[n].cost / scale, low=float(n in walk)) for n in members}
    values = [*_makeable(runner), *output]
    keep = {v: program.variable(low=float(v in output)) for v in values}

    def need(value: int, by: Sequence[int]) -> None:
        """Require that the value is kept or made again if the variables `by` are 1, or always if there are none."""
        columns = [keep[value], again[runner.writer[value]], *by]
        program.row(columns, [1.0, 1.0, *(-1.0 for _ in by)], low=0.0 if by else 1.0)

    for value in runner.wanted():
        need(value, ())
    for n in members:
        for value in nodes[n].reads:
            if value in keep:
                need(value, (again[n],))
                program.row([there[runner.writer[value]], there[n]], [1.0, -1.0], low=0.0)
        for value in nodes[n].writes:
            if value in keep:
                program.row([there[n], keep[value]], [1.0, -1.0], low=0.0)
    sized = _makeable(runner)
    unit = max(budget, 1)
    program.row([keep[v] for v in sized], [runner.problem.sizes[v] / unit for v in sized], high=budget / unit)
    answer = scip.solve(program, scip.Settings(clock, nodes=_NODES))
    if answer.values is None:
        return frozenset()
    return frozenset(v for v in values if answer.values[keep[v]] > 0.5)
