"""The page of `show --html`: its structure by a parser, its numbers unpacked again, its script run, and looked at.

The script runs in node, and the page in a browser, where those are found.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree, which
from typing import Any

import numpy as np
import onnx
import pytest
from matplotlib import image

from remat_cli import solve
from remat_cli.saying.showing import Shown, shown
from tests.browser import BROWSERS, Browser
from tests.cli.running import Command

NODES = [path for path in (which("node"),) if path]  # empty where there is none
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;'\"]]><!--\u2028${1}𝄞"
VOID = {"meta", "input", "img", "br", "hr", "link"}


class Page(HTMLParser):
    """What stands in a page; complains of what is not closed, or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training graph with names that would end a script, a plan of it, its page, and that of the model alone."""
    model = onnx.load(Path(__file__).parents[2] / "data" / "torch_cnn.onnx")
    renamed = {model.graph.node[place].output[0]: f"{HOSTILE}{place}" for place in (0, 5, 60)}
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    for info in model.graph.value_info:
        info.name = renamed.get(info.name, info.name)
    model.graph.node[0].name = f"node {HOSTILE}"
    folder = tmp_path_factory.mktemp("page")
    onnx.save(model, folder / "m.onnx")
    solve(folder / "m.onnx", budget="80%", method="evict", time_limit=300).save(folder / "m.plan.json")
    points = [_point(method, budget) for method in ("auto", HOSTILE) for budget in (1_900_000, 2_100_000, 2_400_000)]
    points.append({**_point("auto", 1000), "peak": None, "overhead": None, "status": "infeasible"})
    curve = {"model": "m.onnx", "points": points, "knee": {"budget": 2_100_000, "method": "auto"}, "least_peak": 1}
    (folder / "curve.json").write_text(json.dumps(curve))
    return folder


def _point(method: str, budget: int) -> dict[str, Any]:
    return {"budget": budget, "method": method, "status": "feasible", "peak": budget, "overhead": 2.5e6 / budget - 1}


@pytest.fixture
def page(remat: Command, folder: Path, tmp_path: Path) -> Path:
    copytree(folder, tmp_path, dirs_exist_ok=True)
    ran = remat("show", "m.plan.json", "--html", "m.html", "--curve", "curve.json")
    assert ran.code == 0, ran.err
    assert "wrote m.html" in ran.out
    return tmp_path / "m.html"


def data_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        text.split('<script id="data" type="application/json">')[1].split("</script>")[0]
    )
    return found


def test_it_stands_alone_and_lets_nothing_else_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = Page(text)
    policy = next(str(meta["content"]) for meta in found.of("meta") if "http-equiv" in meta)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        content = "".join(found.texts[tag]) if tag == "style" else found.texts[tag][-1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert [attributes.get("type") for attributes in found.of("script")] == ["application/json", None]
    assert not any(
        name in ("src", "href", "style") or name.startswith("on") for _, given in found.tags for name in given
    )
    assert not {"img", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in found.tags}
    ids = [given["id"] for _, given in found.tags if "id" in given]
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'byId\("(\w+)"\)', text)) <= {*ids, "cursor"}
    assert all(given["aria-labelledby"] in ids for given in found.of("section"))


def test_names_are_text(page: Path) -> None:
    found = Page(page.read_text(encoding="utf-8"))
    assert f"node {HOSTILE}" in found.texts["td"]  # computed again, or at the peak
    data = data_of(page.read_text(encoding="utf-8"))
    assert any(HOSTILE in rest for rest in data["names"]["rests"])


def test_what_is_packed_is_what_is_so(page: Path) -> None:
    """Unpacked as the script does it, the memory during each compute is `simulate`'s."""
    data, found = data_of(page.read_text(encoding="utf-8")), shown(page.with_name("m.plan.json"))
    problem, names = found.subject.problem, unpacked_names(data)
    places = np.cumsum([0, *(1 + count for count in data["writes"])])[:-1]
    assert [names[place] for place in places] == list(found.subject.nodes)
    assert set(names) - set(found.subject.nodes) <= set(found.subject.values)
    for line, outcome in ((data["before"], found.before), (data["after"], found.after)):
        order = line["order"] or range(len(problem.nodes))
        memory = np.full(len(order), sum(data["fixed"]))
        begins = np.cumsum(line["begins"])
        for value, begin, last in zip(line["values"], begins, line["lasts"], strict=True):
            memory[begin : begin + last] += data["sizes"][value]
        assert tuple(memory + [data["work"][node] for node in order]) == outcome.memory
    assert data["budget"] == found.recorded.budget if found.recorded else None


def unpacked_names(data: dict[str, Any]) -> list[str]:
    """A browser counts letters in units of UTF-16."""
    names, last = [], b""
    for shared, rest in zip(data["names"]["shared"], data["names"]["rests"], strict=True):
        last = last[: 2 * shared] + rest.encode("utf-16-le")
        names.append(last.decode("utf-16-le"))
    return names


def test_its_tables_need_no_script(page: Path) -> None:
    found, plan = Page(page.read_text(encoding="utf-8")), shown(page.with_name("m.plan.json"))
    assert "parameters" in found.texts["td"]
    old, new = plan.breakdowns()
    assert new.node in found.texts["td"]
    assert any(
        ("different ops" in words) == (old.node != new.node) for words in found.texts["p"] if "peaks are" in words
    )
    assert "remat verify m.plan.json" in found.texts["code"]
    assert "What a budget costs in time" in found.texts["h2"]


def test_a_model_has_a_page_too(remat: Command, data: Path, tmp_path: Path) -> None:
    assert remat("show", data / "networks" / "unet.problem.json", "--html", "u.html").code == 0
    text = (tmp_path / "u.html").read_text()
    found = Page(text)
    assert "72 ops, as it stands" in found.texts["p"]
    assert "Computed again" not in text
    assert data_of(text)["before"] is None


def test_what_has_no_meaning(remat: Command, page: Path) -> None:
    for args, code, says in (
        (("m.plan.json", "--curve", "curve.json"), 2, "--html"),
        (("m.plan.json", "m.onnx", "--html", "n.html"), 2, "shows one file"),
        (("m.plan.json", "--html", "m.onnx"), 3, "would be lost"),
        (("m.plan.json", "--html", "curve.json", "--curve", "curve.json"), 2, "would be lost"),
        (("m.plan.json", "--html", "n.html", "--curve", "m.plan.json"), 3, "is no curve"),
        (("m.plan.json", "--html", "n.html", "--curve", "m.onnx"), 3, "is no curve"),
    ):
        ran = remat("show", *args)
        assert (ran.code, len(ran.err.splitlines())) == (code, 1), ran.err
        assert says in ran.err
    assert not page.with_name("n.html").exists()
    broken = json.loads(page.with_name("curve.json").read_text())
    broken["points"][1]["overhead"] = "a"
    page.with_name("curve.json").write_text(json.dumps(broken))
    assert "points[1]" in remat("show", "m.plan.json", "--html", "n.html", "--curve", "curve.json").err


@pytest.mark.parametrize("node", NODES)
def test_its_script_runs(page: Path, node: str, remat: Command) -> None:
    ran = subprocess.run(
        [node, Path(__file__).with_name("page.mjs"), page], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found, plan = json.loads(ran.stdout), shown(page.with_name("m.plan.json"))
    assert found["lines"] == remat("show", "m.plan.json", "--statements").out.rstrip("\n").split("\n")
    assert found["broken"] == 0
    assert set(found["byPhase"]) >= {"forward", "recomputed", "backward", "before", "outline"}
    assert not {"forward", "backward"} & set(found["byRole"])
    for op, said, largest in found["told"]:
        step = int(re.findall(r"compute (\d+) of", said)[0]) - 1
        assert op == plan.subject.nodes[plan.plan.order()[step]]
        assert largest == largest_at(plan, step)

    name, (words, buttons) = found["told"][-1][2][0], found["traced"]
    value = plan.subject.values.index(name)
    held = [block for block in plan.lines[1].blocks if block.value == value]
    made = plan.plan.order()[held[0].start]
    assert value in plan.subject.problem.nodes[made].writes
    assert words.startswith(f"{name}, made by {plan.subject.nodes[made]} (compute {held[0].start + 1})")
    assert words.count("computed again by") == len(held) - 1
    assert buttons >= len(held)
    assert found["gone"] == plan.subject.nodes[made]


def largest_at(plan: Shown, step: int) -> list[str]:
    return [plan.subject.values[block.value] for block in plan.lines[1].held(step)[:12]]


PHONE = 390  # pixels


@pytest.mark.parametrize("path", BROWSERS)
def test_it_is_looked_at(page: Path, path: str, tmp_path: Path) -> None:
    """In a real browser: it draws something, says no error, asks for nothing, and tells of what the mouse is over."""
    plan = shown(page.with_name("m.plan.json"))
    profile = tmp_path / "profile"
    profile.mkdir()
    with Browser(path, profile) as browser:
        browser.open(page)
        assert browser.ask("document.documentElement.getAttribute('data-ready')") == "yes"
        assert browser.ask("document.images.length") == 0
        where = "(box => [box.left, box.top, box.width, box.height])"
        left, top, width, height = browser.ask(f"{where}(document.getElementById('picture').getBoundingClientRect())")
        seen = set()
        for share in (0.3, 0.6, 0.9):
            browser.mouse("mouseMoved", left + share * width, top + height / 2)
            op, said = browser.ask("['op', 'said'].map(id => document.getElementById(id).textContent)")
            step = int(re.findall(r"compute (\d+) of", said)[0]) - 1
            assert op == plan.subject.nodes[plan.plan.order()[step]]
            seen.add(op)
        assert len(seen) == 3
        colors = {}
        for theme in ("light", "dark"):
            browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
            browser.screenshot(tmp_path / f"{theme}.png")
            pixels = (image.imread(tmp_path / f"{theme}.png")[..., :3] * 255).round().astype(int) @ [1 << 16, 1 << 8, 1]
            shades, counts = np.unique(pixels, return_counts=True)
            assert len(shades) > 50
            colors[theme] = f"{shades[counts.argmax()]:06x}"
        assert colors == {"light": "ffffff", "dark": "0d1117"}  # the paper
        press = {"button": "left", "clickCount": 1}
        browser.mouse("mousePressed", left + 0.4 * width, top + 50, **press)
        browser.mouse("mouseReleased", left + 0.6 * width, top + 50, **press)
        whole = "document.getElementById('whole').hidden"
        for place in (-0.2, 0.01, 0.25, 0.5, 0.75, 0.99):  # a double-click zooms out wherever the cursor is
            browser.mouse("mousePressed", left + 0.4 * width, top + 50, **press)
            browser.mouse("mouseReleased", left + 0.6 * width, top + 50, **press)
            assert browser.ask(whole) is False  # zoomed in
            x, y = left + max(place, 0) * width, top + place * height
            browser.mouse("mouseMoved", x, y)
            for count in (1, 2):
                browser.mouse("mousePressed", x, y, button="left", clickCount=count)
                browser.mouse("mouseReleased", x, y, button="left", clickCount=count)
            assert browser.ask(whole) is True, place
        browser("Emulation.setDeviceMetricsOverride", width=PHONE, height=800, deviceScaleFactor=1, mobile=True)
        browser.open(page)
        assert browser.ask("document.documentElement.scrollWidth") <= PHONE
        left, _, width, _ = browser.ask(f"{where}(document.querySelector('text.peak').getBoundingClientRect())")
        assert left >= 0
        assert left + width <= PHONE
        assert browser.complaints() == []
