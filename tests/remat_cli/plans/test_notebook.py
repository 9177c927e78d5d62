"""What a notebook shows: well-formed, escaped, with no script, and pictures as high as what they are of."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import remat_cli as remat
from remat_cli.plans.notebook import HIGH, ROOM, WIDE, bars, memory_over_time, overhead_by_budget, shown
from remat_cli.plans.timeline import timeline
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.simulate import simulate

CNN = Path(__file__).parents[2] / "data" / "torch_cnn.onnx"
SVG = "{http://www.w3.org/2000/svg}"
# a, b of a, c of a and b: with a made again, b need not be held beside it
PROBLEM = Problem((Node(10, (), (0,)), Node(20, (0,), (1,)), Node(5, (0, 1), (2,))), (400, 200, 100), (2,))


def read(html: str) -> ElementTree.Element:
    assert "<script" not in html
    return ElementTree.fromstring(f"<div>{html}</div>")


def heights(polygon: ElementTree.Element) -> list[float]:
    return [ROOM + HIGH - float(spot.split(",")[1]) for spot in polygon.attrib["points"].split()]


def test_a_picture_is_as_high_as_what_is_held() -> None:
    plans = [lower(PROBLEM, order) for order in ((0, 1, 2), (0, 1, 0, 2))]
    old, new = (simulate(PROBLEM, plan).peak for plan in plans)
    picture = read(memory_over_time(*(timeline(PROBLEM, plan) for plan in plans), budget=1400))
    areas = picture.findall(f".//{SVG}polygon")
    assert [max(heights(area)) for area in areas] == pytest.approx([HIGH * old / 1400, HIGH * new / 1400], abs=0.1)
    ends = [max(float(spot.split(",")[0]) for spot in area.attrib["points"].split()) for area in areas]
    assert ends == pytest.approx([WIDE * 35 // 45, WIDE])  # the time that either takes


def test_a_problem_without_ops_or_times_is_drawn() -> None:
    bare = Problem((), (), ())
    none = timeline(bare, lower(bare, ()))
    assert read(memory_over_time(none, none, 0)).find(f".//{SVG}polygon") is not None
    free = Problem((Node(0, (), (0,)),), (8,), (0,))
    line = timeline(free, lower(free, (0,)))
    assert max(heights(read(memory_over_time(line, line, 8)).findall(f".//{SVG}polygon")[0])) == HIGH


def test_words_are_escaped_and_nothing_is_drawn_of_nothing() -> None:
    assert read(shown("<b>", [("&", "<i>")], ("<u>",))).findall(".//td")[0].text == "<i>"
    assert read(bars([("<s>", 3)])).findall(f".//{SVG}rect")[0].attrib["width"] == f"{WIDE:.1f}"
    assert overhead_by_budget([]) == ""


@pytest.mark.slow
def test_a_plan_a_curve_and_a_verification_are_shown() -> None:
    plan = remat.solve(CNN, budget="90%", method="evict", work_limit=100_000)
    assert len(read(plan._repr_html_()).findall(f".//{SVG}polygon")) == 2
    curve = remat.sweep(CNN, budgets="100%,90%", methods=("evict",), work_limit=100_000)
    assert len(read(curve._repr_html_()).findall(f".//{SVG}circle")) == 2
    found = remat.verify(plan)
    page = read(found._repr_html_())
    assert found.ok
    assert "as promised" in "".join(page.itertext())
    assert len(page.findall(".//tr")) == 3
    assert len(page.findall(f".//{SVG}rect")) == 2
    assert repr(found).startswith("<verified: as promised: live, strict session ")
