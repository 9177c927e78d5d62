"""From training graphs to chains and back: orders are legal, fit, and say no more than they can."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from solvers.methods.chains.from_graph import Stages, cut
from solvers.methods.chains.methods import revolve, rotor, rotor_floating, rotor_plus
from solvers.methods.chains.stage import Runner
from solvers.notes import SolverNote
from solvers.problem import Limits, Node, Problem, Solver, Status
from solvers.schedule import baseline, evaluate, schedule
from tests.ample import ample
from tests.sampling import few
from tests.solvers.methods.chains.brute import least_makespan, random_tiny
from tests.solvers.oracle import cheapest
from tests.solvers.random_problems import random_problem

METHODS: tuple[Solver, ...] = (rotor, rotor_floating, revolve, rotor_plus)


def limits() -> Limits:
    return Limits(ample())


def training_step(blocks: int, random: Random) -> Problem:
    """Blocks of random forward ops, a residual around each; every op's gradient reads its inputs and maybe its result.

    Gradients of values read several times are summed first, as differentiation does it.
    """
    reads: list[tuple[int, ...]] = []
    into: tuple[int, ...] = ()
    for _ in range(blocks):
        first = len(reads)
        reads.append(into)
        for place in range(1, random.randint(2, 5)):
            inside = range(first, first + place)
            reads.append(tuple(sorted({random.choice(inside), random.choice(inside)})))
        reads.append(tuple(sorted({*into, *range(first, len(reads))})) if random.random() < 0.8 else (len(reads) - 1,))
        into = (len(reads) - 1,)
    sizes = [random.randint(1, 9) for _ in reads]
    nodes = [Node(random.randint(1, 9), read, (index,)) for index, read in enumerate(reads)]
    parts: dict[int, list[int]] = {}
    outputs: list[int] = []

    def write(cost: int, uses: tuple[int, ...], size: int) -> int:
        sizes.append(size)
        nodes.append(Node(cost, tuple(dict.fromkeys(uses)), (len(sizes) - 1,), backward=True))
        return len(sizes) - 1

    for index in reversed(range(len(reads))):
        given = parts.get(index, [])
        total = (given[0] if len(given) == 1 else write(1, tuple(given), sizes[index])) if given else None
        own = (index,) if random.random() < 0.5 else ()
        uses = (*reads[index], *own, *(() if total is None else (total,)))
        outputs.append(write(random.randint(1, 9), uses, 1))
        for read in reads[index]:
            parts.setdefault(read, []).append(write(random.randint(1, 9), uses, sizes[read]))
    return Problem(tuple(nodes), tuple(sizes), tuple(outputs), resident=random.choice((0, 7)))


def network(path: Path) -> Problem:
    told = json.loads(path.read_text())
    number = {value["name"]: index for index, value in enumerate(told["values"])}
    return Problem(
        tuple(
            Node(
                node["cost"],
                tuple(number[name] for name in node["reads"]),
                tuple(number[name] for name in node["writes"]),
                node.get("workspace", 0),
                backward=node["phase"] == "backward",
            )
            for node in told["nodes"]
        ),
        tuple(value["bytes"] for value in told["values"]),
        tuple(number[name] for name in told["outputs"]),
        told["resident"],
    )


def check(problem: Problem, budget: int, method: Solver) -> int | None:
    """Hold a method to its word; its cost, if it says that the order fits."""
    done = schedule(problem, budget, method, limits())
    total = sum(node.cost for node in problem.nodes)
    assert done.outcome is not None
    assert done.outcome.cost >= total
    if done.result.status.found:
        assert done.outcome.peak <= budget
        assert done.result.status is not Status.OPTIMAL or done.outcome.cost == total
        return done.outcome.cost
    assert done.result.status is Status.UNKNOWN
    assert done.outcome.peak > budget
    return None


def faults(stages: Stages) -> list[str]:
    """What a stage must not do, looked for from outside."""
    problem, found = stages.problem, []
    stage_of = {i: n for n, stage in enumerate(stages.stages, 1) for i in (*stage.forward, *stage.backward)}
    in_forward = {i for stage in stages.stages for i in stage.forward}
    writer = problem.writers()
    if sorted(stage_of) != list(range(len(problem.nodes))):
        found.append("a node has no stage")
    for number, stage in enumerate(stages.stages, 1):
        for index in stage.forward + stage.backward:
            for value in problem.nodes[index].reads:
                by = writer[value]
                inside = stage_of[by] == number or value in stage.input or value in stages.pinned
                if by in in_forward and not inside:
                    found.append(f"node {index} reads {value}, which is not in its stage")
                if by not in in_forward and stage_of[by] < number:
                    found.append(f"node {index} reads {value}, a gradient of an earlier stage")
    return found


@pytest.mark.parametrize("seed", range(30))
def test_stages_are_closed_whatever_the_graph(seed: int) -> None:
    random = Random(seed)
    problem = training_step(random.randint(2, 7), random)
    for most, coarse in ((1, 1), (2, 1), (4, 1), (1, 2), (2, 3)):
        stages = cut(problem, most, coarse)
        assert not faults(stages)
        assert all(len(stage.output) <= most for stage in stages.stages)
    assert len(cut(problem).stages) > 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_orders_of_random_training_steps_are_legal_and_fit(method: Solver, seed: int) -> None:
    random = Random(seed)
    problem = training_step(random.randint(2, 5), random)
    peak = baseline(problem)[1].peak
    for share in (0.6, 0.85):
        check(problem, int(peak * share), method)


@pytest.mark.parametrize("seed", range(24))
def test_anything_goes_in(seed: int) -> None:
    """Effects, several writes, optional ones, nothing flagged backward or flags that make no sense."""
    random = Random(seed)
    problem = random_problem(random, random.randint(1, 12))
    if seed % 2:
        flagged = (replace(node, backward=random.random() < 0.4) for node in problem.nodes)
        problem = replace(problem, nodes=tuple(flagged))
    assert not faults(cut(problem))
    peak = baseline(problem)[1].peak
    for method in METHODS:
        check(problem, int(peak * 0.85), method)
        check(problem, peak, method)


@pytest.mark.parametrize("seed", range(6))
def test_never_below_the_optimum(seed: int) -> None:
    random = Random(seed)
    problem = training_step(2, random)
    while len(problem.nodes) > 12:
        problem = training_step(1, random)
    budget = int(baseline(problem)[1].peak * 0.85)
    best = cheapest(problem, budget)
    for method in METHODS:
        cost = check(problem, budget, method)
        assert cost is None or (best is not None and cost >= best)


@pytest.mark.parametrize("seed", range(12))
def test_a_chain_as_a_graph_costs_no_more_than_the_chain(seed: int) -> None:
    """The exhaustive search over sequences knows no graph; what it finds, the graph's order must not exceed."""
    random = Random(seed)
    tiny = replace(random_tiny(random, random.randint(3, 6)), of=(0,) * 9, ob=(0,) * 9)
    count = len(tiny.fw)
    extra = [full - size for full, size in zip(tiny.abar, tiny.a, strict=True)]
    sizes = [*tiny.a[1:], *extra[1:], *reversed(tiny.a[:-1])]  # a^1.., what else is in ā^1.., δ^{n-1}..
    nodes = [Node(tiny.fw[k], (k - 1,) if k else (), (k, count + k)) for k in range(count)]
    for k in reversed(range(count)):
        gradient = () if k == count - 1 else (3 * count - 2 - k,)
        reads = (k, count + k, *((k - 1,) if k else ()), *gradient)
        nodes.append(Node(tiny.bw[k], reads, (3 * count - 1 - k,), backward=True))
    problem = Problem(tuple(nodes), tuple(sizes), (), resident=tiny.a[0])
    peak = baseline(problem)[1].peak
    for share in (0.5, 0.7, 0.9):
        best = least_makespan(tiny, int(peak * share), persistent=True)
        cost = check(problem, int(peak * share), rotor)
        assert best is None or (cost is not None and cost <= best)


@pytest.mark.parametrize(("name", "share"), [("mobilenet_fused", 0.7), ("unet", 0.5)])
def test_networks(data: Path, name: str, share: float) -> None:
    problem = network(data / "networks" / f"{name}.problem.json")
    told = json.loads((data / "networks" / "expected.json").read_text())[name]
    budget = int(told["baseline_peak"] * share)
    costs = {method: check(problem, budget, method) for method in METHODS}
    plus, plain, floated = costs[rotor_plus], costs[rotor], costs[rotor_floating]
    assert plain is None or (plus is not None and plus <= plain)
    assert plain is None or (floated is not None and floated <= plain)
    optimum = told.get("optimum_ratio_by_budget_fraction", {}).get(str(share))
    if optimum is not None and plus is not None:
        assert plus >= (optimum - 1e-5) * told["baseline_cost"]


@pytest.mark.parametrize(("name", "share"), few([("gpt2", 0.5), ("gpt2", 0.7)], 1, several=True))
def test_identical_blocks_within_one_per_cent(data: Path, name: str, share: float) -> None:
    problem = network(data / "networks" / f"{name}.problem.json")
    told = json.loads((data / "networks" / "expected.json").read_text())[name]
    best = told["optimum_ratio_by_budget_fraction"].get(str(share)) or told["best_known_at_0.7"]
    cost = check(problem, int(told["baseline_peak"] * share), rotor_plus)
    assert cost is not None
    assert cost <= 1.01 * best * told["baseline_cost"]


def test_a_backward_that_is_not_flagged_is_found(data: Path) -> None:
    problem = network(data / "networks" / "vgg16.problem.json")
    silent = replace(problem, nodes=tuple(replace(node, backward=False) for node in problem.nodes))
    assert cut(silent).derived
    assert len(cut(silent).stages) > 10
    budget = int(baseline(problem)[1].peak * 0.85)
    done = schedule(silent, budget, rotor, limits())
    assert done.result.status is Status.FEASIBLE
    assert any(note.kind == SolverNote.BACKWARD_GUESSED for note in done.result.notes)


def test_random_ops_are_run_once_and_their_results_kept() -> None:
    problem = training_step(4, Random(3))
    dice = [index for index, node in enumerate(problem.nodes) if not node.backward][3::4]
    nodes = tuple(replace(node, once=index in dice) for index, node in enumerate(problem.nodes))
    loaded = replace(problem, nodes=nodes)
    stages = cut(loaded)
    assert {value for index in dice for value in nodes[index].writes} <= stages.pinned
    order = schedule(loaded, int(baseline(loaded)[1].peak * 0.8), rotor_plus, limits()).result.order
    assert order is not None
    assert all(order.count(index) == 1 for index in dice)


def with_turned_weights(problem: Problem) -> tuple[Problem, dict[int, int]]:
    """Each backward op reads, besides, a large value that an op makes from nothing, as one that turns a weight around.

    The second answer: such an op for each backward op.
    """
    nodes, sizes, turns = list(problem.nodes), list(problem.sizes), {}
    for index, node in enumerate(problem.nodes):
        if node.backward:
            sizes.append(50)
            turns[index] = len(sizes) - 1
            nodes[index] = replace(node, reads=(*node.reads, len(sizes) - 1))
    made: list[Node] = []
    place: dict[int, int] = {}
    for index, node in enumerate(nodes):
        if index in turns:
            made.append(Node(1, (), (turns[index],), backward=True))
        place[index] = len(made)
        made.append(node)
    found = replace(problem, nodes=tuple(made), sizes=tuple(sizes))
    return found, {place[index]: place[index] - 1 for index in turns}


@pytest.mark.parametrize("seed", range(6))
def test_an_op_that_reads_nothing_runs_in_the_stage_of_its_reader(seed: int) -> None:
    random = Random(seed)
    problem, turns = with_turned_weights(training_step(random.randint(3, 6), random))
    stages = cut(problem)
    assert not faults(stages)
    stage_of = {index: n for n, stage in enumerate(stages.stages) for index in stage.backward}
    assert all(stage_of[reader] == stage_of[turn] for reader, turn in turns.items())
    check(problem, int(baseline(problem)[1].peak * 0.85), rotor)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("patience", [0, 1, 7, 60])
def test_whoever_is_stopped_says_what_is_known(method: Solver, patience: int, data: Path) -> None:
    problem = network(data / "networks" / "gpt2_4l.problem.json")
    budget = int(baseline(problem)[1].peak * 0.7)
    asked = iter(range(patience))
    done = schedule(problem, budget, method, Limits(ample(stopped=lambda: next(asked, None) is None)))
    assert done.outcome is not None
    assert (done.result.status is Status.FEASIBLE) == (done.outcome.peak <= budget)


@pytest.mark.parametrize("seed", [1, 3, 4, 5, 7])  # steps in which every op has a reader, and so a stage
def test_the_memory_of_a_stage_is_what_an_order_needs(seed: int) -> None:
    """A graph that is one stage, its writes over its reads included: the simulator says the same of it."""
    random = Random(seed)
    problem = training_step(2, random)
    over = tuple(
        replace(node, overwrites=tuple((write, read) for write in node.writes for read in node.reads[:1]))
        for node in problem.nodes
    )
    problem = replace(problem, nodes=over)
    stages = cut(problem, coarse=len(problem.nodes))
    assert len(stages.stages) == 1
    runner = Runner(stages, 1)
    order = (*runner.forward(runner.wanted()), *runner.backward(runner.wanted()))
    assert sorted(order) == list(range(len(problem.nodes)))
    needed = max(runner.way(runner.wanted()).forward, runner.way(runner.wanted()).backward) + problem.resident
    assert needed == evaluate(problem, order)[1].peak


def test_a_stage_keeps_exactly_what_its_backward_reads(data: Path) -> None:
    stages = cut(network(data / "networks" / "gpt2_4l.problem.json"))
    for number in range(1, len(stages.stages) + 1):
        runner = Runner(stages, number)
        stage = stages.stages[number - 1]
        reads = {value for index in stage.backward for value in stages.problem.nodes[index].reads}
        written = {value for index in stage.forward for value in stages.problem.nodes[index].writes}
        assert runner.wanted() == reads & written - stages.pinned
        assert runner.way(runner.wanted()).keep - stage.output == runner.wanted() - stage.output
