"""Pictures, opened again: as XML and as pixels, and R and S held to the paper's own constraints."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from random import Random
from shutil import copytree
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb

from remat_cli import solve
from remat_cli.plans.roles import Role
from remat_cli.saying.pictures import canvas
from remat_cli.saying.pictures.canvas import BYTES, PHASES, ROLES, short, unit
from remat_cli.saying.pictures.matrices import matrices
from remat_cli.units import show_bytes
from solvers.plan import IllegalOrder
from solvers.problem import Problem
from solvers.schedule import evaluate
from tests.cli.running import Command
from tests.contract.graphs import GRAPHS

HOSTILE = "$x_{1}$<script>&'\"]]>--\n\x1b[2J%s\u65e5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small training graph, one of whose values has a name that many a format could choke on, and a plan of it."""
    model = onnx.load(Path(__file__).parents[2] / "data" / "torch_cnn.onnx")
    first = model.graph.node[0].output[0]
    for node in model.graph.node:
        node.input[:] = [HOSTILE if name == first else name for name in node.input]
        node.output[:] = [HOSTILE if name == first else name for name in node.output]
    for info in model.graph.value_info:
        info.name = HOSTILE if info.name == first else info.name
    model.graph.node[0].name = "node " + HOSTILE
    folder = tmp_path_factory.mktemp("planned")
    onnx.save(model, folder / "m.onnx")
    for name, budget in (("m", "80%"), ("n", "90%")):
        solve(folder / "m.onnx", budget=budget, method="evict", time_limit=300).save(folder / f"{name}.plan.json")
    return folder


@pytest.fixture
def planned(remat: Command, folder: Path, tmp_path: Path) -> Command:
    copytree(folder, tmp_path, dirs_exist_ok=True)
    return remat


def words_of(picture: Path) -> str:
    """What is written in an SVG: matplotlib keeps each text as a comment beside its outlines."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    tree = ElementTree.parse(picture, parser)
    return "\n".join(part.text or "" for part in tree.iter() if part.tag is ElementTree.Comment)


def colors_of(picture: Path) -> set[tuple[int, int, int]]:
    pixels = (image.imread(picture)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    return {(int(red), int(green), int(blue)) for red, green, blue in np.unique(pixels, axis=0)}


def test_memory_over_time(planned: Command, tmp_path: Path) -> None:
    shown = planned("show", "m.plan.json", "--json").object
    assert "wrote m.svg" in planned("show", "m.plan.json", "--plot", "m.svg").out
    words = words_of(tmp_path / "m.svg")
    for word in (
        "budget 2.049MB",
        "as it stands: 2.43MB",
        "recomputed",
        "backward",
        "parameters: 102.6KB",
        "time (us)",
    ):
        assert word in words
    assert f"at {short(shown['peak_at'])}" in words
    again = tmp_path / "again.svg"
    planned("show", "m.plan.json", "--plot", again)
    assert again.read_bytes() == (tmp_path / "m.svg").read_bytes()


def test_the_phases_are_told_apart(planned: Command, tmp_path: Path) -> None:
    """Each phase fills as large a share of the picture as its computes do of bytes times time."""
    assert planned("show", "m.plan.json", "--plot", "m.png").code == 0
    pixels = (image.imread(tmp_path / "m.png")[..., :3]).reshape(-1, 3)
    seen = {
        phase: int((np.abs(pixels - (0.85 * np.array(to_rgb(color)) + 0.15)).max(axis=1) < 0.02).sum())
        for phase, color in PHASES.items()
    }
    assert min(seen.values()) > 1000
    assert seen["backward"] > seen["forward"] > seen["recomputed"]


def test_plans_over_each_other(planned: Command, tmp_path: Path) -> None:
    ran = planned("show", "m.plan.json", "n.plan.json", "--plot", "both.svg")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 4  # a heading, a line for each, and the picture
    words = words_of(tmp_path / "both.svg")
    assert "m (evict)" in words
    assert "n (evict)" in words
    assert words.count("as it stands") == 1
    assert len(planned("show", "m.plan.json", "n.plan.json", "--json").object["shown"]) == 2


def test_bars(planned: Command, data: Path, tmp_path: Path) -> None:
    files = ("m.onnx", data / "ort_mlp.onnx", "m.plan.json", data / "checkmate" / "linear4.problem.json")
    ran = planned("show", *files, "--breakdown", "--plot", "bars.png", "--csv")
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["name"], row["method"]) for row in rows] == [
        ("m", ""),
        ("m", "evict"),
        ("ort_mlp", ""),
        ("linear4", ""),
    ]
    for row in rows:
        sizes = [int(row[role.key]) for role in Role if row.get(role.key)]
        assert sum(sizes) == int(row["total"])
    assert rows[2]["gradients"] > "0"
    assert rows[3]["parameters"] == ""
    shades = colors_of(tmp_path / "bars.png")
    for role in (Role.PARAMETERS, Role.GRADIENTS, Role.ACTIVATIONS, Role.WORKSPACE):
        assert tuple(round(255 * part) for part in to_rgb(ROLES[role])) in shades
    bars = planned("show", *files, "--breakdown", "--json").object["bars"]
    assert [str(bar["total"]) for bar in bars] == [row["total"] for row in rows]
    assert [row["file"] for row in rows] == ["m.onnx", "m.plan.json", "ort_mlp.onnx", "linear4.problem.json"]
    assert [bar["file"] for bar in bars] == [row["file"] for row in rows]
    words = planned("show", "m.plan.json", "--breakdown").out
    assert "activations" in words
    budget = json.loads(Path("m.plan.json").read_text())["budget"]
    assert re.search(rf"m\.plan\.json +evict +{re.escape(show_bytes(budget))} ", words)


@pytest.mark.parametrize("kind, begins", [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_every_kind_of_picture(planned: Command, tmp_path: Path, kind: str, begins: bytes) -> None:
    assert planned("show", "m.plan.json", "--matrices", f"m.{kind}").code == 0
    assert (tmp_path / f"m.{kind}").read_bytes().startswith(begins)


def test_problems_without_times(remat: Command, tmp_path: Path) -> None:
    text = '{"format": "remat-problem/1", "resident": 0, "values": [{"name": "a", "bytes": 4}], "outputs": ["a"], '
    text += '"nodes": [{"name": "n", "cost": 0, "reads": [], "writes": ["a"]}]}'
    (tmp_path / "free.problem.json").write_text(text)
    assert remat("show", "free.problem.json", "--plot", "free.svg", "--matrices", "rs.svg").code == 0
    assert "computes" in words_of(tmp_path / "free.svg")


@pytest.mark.parametrize(
    "args, says",
    [
        (("--plot", "m.jpg"), "end it with .png"),
        (("--plot", "m.plan.json"), "is no picture"),
        (("--plot", "m.png", "--matrices", "m.png"), "would be written twice"),
        (("--csv",), "--breakdown"),
        (("m.onnx", "--statements"), "shows one file"),
        (("--dim", "batch=3"), "leave out --costs and --dim"),
    ],
)
def test_what_has_no_meaning(planned: Command, args: tuple[str, ...], says: str, tmp_path: Path) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    ran = planned("show", "m.plan.json", *args)
    assert ran.code == 2
    assert says in ran.err
    assert {path.name for path in tmp_path.iterdir()} == before


def test_without_matplotlib(planned: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    ran = planned("show", "m.plan.json", "--plot", "m.png")
    assert (ran.code, "pip install 'remat[plot]'" in ran.err) == (2, True)


def order_of(problem: Problem, seed: int) -> list[int]:
    """A random order with repeats that can be run."""
    random, count = Random(seed), len(problem.nodes)
    often = [i for i in range(count) if not problem.nodes[i].once]
    while True:
        order = list(range(count))
        for node in random.choices(often, k=count):
            order.insert(random.randint(node, len(order)), node)
        try:
            evaluate(problem, order)
        except IllegalOrder:
            continue
        return order


@pytest.mark.parametrize("name", GRAPHS)
def test_r_and_s_keep_the_papers_constraints(name: str) -> None:
    """Equations (1b) to (1e): the reads of what is computed are computed or held; what is held was one or the other."""
    problem = GRAPHS[name]
    writer = problem.writers()
    for seed in range(20):
        both = matrices(problem, evaluate(problem, order_of(problem, seed))[0])
        column = {node: place for place, node in enumerate(both.nodes)}
        assert both.computed.diagonal().all()
        assert not np.triu(both.computed, 1).any()
        assert not both.held[0].any()
        assert not (both.held[1:] & ~(both.computed | both.held)[:-1]).any()
        for stage, place in zip(*np.nonzero(both.computed), strict=True):
            for read in problem.nodes[both.nodes[place]].reads:
                needed = column[writer[read]]
                assert both.computed[stage, needed] or both.held[stage, needed]


def test_units() -> None:
    assert unit(2.5e6, BYTES) == ("MB", 1e6)
    assert unit(0, BYTES) == ("B", 1.0)
    assert len(short("x" * 100)) == 40
    assert short("a\x1bb\n") == "a\ufffdb\ufffd"
