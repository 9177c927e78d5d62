"""Every line of the benches' results says what it is of, and what is a bench runs by the one runner."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "examples" / "bench"
PAGES = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
SAID = {"commit", "machine", "versions", "day", "load", "asked"}


@pytest.fixture
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_benches", BENCH / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_result_is_of_a_bench_and_names_its_origin(runner: ModuleType) -> None:
    for path in (BENCH / "results").glob("*.jsonl"):
        assert (BENCH / f"{path.stem}.py").exists()
        for row in runner.read(path):
            assert row.keys() >= SAID, (path.name, SAID - row.keys())
            assert row["commit"]


def test_results_stand_in_one_place() -> None:
    assert not [path.name for kind in ("*.json", "*.jsonl", "*.txt", "*.md") for path in BENCH.glob(kind)]


def test_pages_name_benches_and_results_that_there_are(runner: ModuleType) -> None:
    named = [
        (page.name, found) for page in PAGES for found in re.findall(r"bench/(run\.py \w+|[\w/.]+)", page.read_text())
    ]
    for page, what in named:
        name = what.removeprefix("run.py ")
        assert name in runner.names() if name != what else (BENCH / what).exists(), (page, what)


def test_a_row_measured_again_takes_the_place_of_the_old_one(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counted.py").write_text(
        'KEY = ("of",)\n\n\ndef words(parser):\n    parser.add_argument("numbers", type=int, nargs="*")\n\n\n'
        'def rows(asked):\n    yield from ({"of": number % 3, "found": number} for number in asked.numbers)\n'
    )
    monkeypatch.setattr(runner, "HERE", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert runner.names() == ["counted"]
    out = tmp_path / "results" / "counted.jsonl"
    runner.run("counted", ["0", "1", "-o", str(out)])
    runner.run("counted", ["4", "-o", str(out)])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["of"], row["found"]) for row in rows] == [(0, 0), (1, 4)]
    assert [row["asked"].split()[0] for row in rows] == ["0", "4"]
