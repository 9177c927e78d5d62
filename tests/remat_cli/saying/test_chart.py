"""Charts as text: how wide they are, how high they stand, and what their letters say."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from remat_cli.plans.timeline import Timeline, timeline
from remat_cli.saying.chart import LABEL, Style, chart
from solvers.problem import Node, Problem
from solvers.schedule import evaluate
from tests.cli.running import Command

STEPS = 40


def stairs(costs: list[int], sizes: list[int]) -> Timeline:
    """Each op makes a value that only it and the next one hold."""
    nodes = [Node(cost, (i - 1,) if i else (), (i,), backward=2 * i > len(costs)) for i, cost in enumerate(costs)]
    problem = Problem(tuple(nodes), tuple(sizes), (len(costs) - 1,))
    return timeline(problem, evaluate(problem, range(len(costs)))[0])


@pytest.mark.parametrize("width", [1, 21, 40, 80, 133])
@pytest.mark.parametrize("blocks", [True, False])
def test_it_keeps_to_its_width(width: int, blocks: bool) -> None:
    random = Random(width)
    line = stairs(random.choices(range(50), k=STEPS), random.choices(range(1, 99999), k=STEPS))
    lines = chart(line, 70000, Style(width, blocks=blocks)).splitlines()
    assert max(map(len, lines)) <= max(width, 21) + (10 if width < 40 else 0)  # a single word is not cut
    assert all(letter.isascii() for letter in "".join(lines)) is not blocks


def test_columns_are_as_high_as_memory() -> None:
    """Ten columns of one op each: as many eighths as it holds, rounded up."""
    sizes = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    line = stairs([1] * 10, sizes)
    rows = [row[LABEL + 1 :] for row in chart(line, None, Style(LABEL + 11 + 2, 5)).splitlines()[:5]]
    levels = [sum(" ▁▂▃▄▅▆▇█".index(row[column]) for row in rows) for column in range(12)]
    for column, level in enumerate(levels):
        inside = {step for step in range(10) if step * 12 < (column + 1) * 10 and (step + 1) * 12 > column * 10}
        assert level == -(-40 * max(line.memory[step] for step in inside) // max(line.memory))


def test_an_op_that_takes_no_time_is_seen() -> None:
    line = stairs([5, 0, 5], [1, 1000, 1])
    assert "█" in chart(line, None, Style(40))
    assert line.memory[1] > line.memory[0]
    assert chart(stairs([0, 0], [1, 1]), None, Style(40)).splitlines()[-1].strip() == "f forward"


def test_colors_are_only_for_terminals(remat: Command, data: Path) -> None:
    ran = remat("show", data / "torch_mlp.onnx", data / "networks" / "unet.problem.json", "--chart")
    assert ran.code == 0
    assert "\033" not in ran.out
    assert ran.out.count("f forward, b backward") == 2
    assert "\033[34m" in chart(stairs([1], [1]), None, Style(colors=True))
