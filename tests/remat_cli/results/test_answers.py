"""What is kept comes back as the very answer that was given first, whatever it was: a plan, a proof or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import remat_cli as remat
from remat_cli.actions.pieces_asked import pieces_named
from remat_cli.actions.piecing import in_pieces, offered
from remat_cli.actions.questions import Question, kind_named
from remat_cli.actions.solving import ask
from remat_cli.model.quantities import parse_budget
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.stock.target import StockTarget
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.target import Target
from remat_cli.results.memory import Memory
from remat_cli.results.store import Store
from solvers.clock import Clock, limited
from solvers.problem import Limits
from tests.sampling import few

DATA = Path(__file__).parents[2] / "data"
CNN, CHAIN = DATA / "torch_cnn.onnx", DATA / "checkmate" / "linear8.problem.json"
UNET, MLP = DATA / "torch_unet_convt.onnx", DATA / "torch_mlp.onnx"


def question(path: Path, **said: Any) -> Any:
    return pytest.param(path, said, id=f"{path.name.split('.')[0]}-" + "-".join(map(str, said.values())))


QUESTIONS = [
    *(question(CNN, budget=budget) for budget in ("100%", "80%", "60%", "35%", "1%")),
    *(question(CNN, budget=budget, runtime="stock") for budget in ("100%", "85%", "35%")),
    *(question(UNET, budget=budget, method="evict") for budget in ("70%", "30%")),
    *(question(CHAIN, budget=budget) for budget in ("6", "4", "2")),
    *(question(CHAIN, budget=budget, method="milp") for budget in ("6", "4", "2")),
    question(CNN, minimize="peak"),
    *(question(MLP, budget=budget, runtime="stock") for budget in ("70%", "54%", "30%")),
    question(CNN, budget="80%", method="chen-greedy"),
    question(CNN, budget="60%", method="rotor"),
    question(CNN, minimize="peak", runtime="stock"),
    question(CHAIN, minimize="peak"),
    question(CHAIN, minimize="peak", max_overhead=0.25),
    question(CNN, budget="80%", method="checkpoint-all"),
    question(CNN, method="min-cut"),
    question(CNN, budget="75%", method="milp", reorder=True),
    *(question(MLP, budget=budget, pieces="auto") for budget in ("100%", "70%", "30%", "1%")),
    *(question(MLP, budget=budget, pieces="exact") for budget in ("70%", "30%")),
    question(MLP, minimize="peak", pieces="auto"),
    question(MLP, minimize="peak", pieces="exact", max_overhead=0.25),
]
LIMITED = 4_000  # moves of a search


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def _asked(path: Path, said: dict[str, Any], store: Store, clock: Clock | None = None) -> Answer:
    kind = kind_named(said.get("runtime", "remat"))
    budget = parse_budget(said["budget"]) if "budget" in said else None
    own = {name: value for name, value in said.items() if name not in ("runtime", "budget", "pieces")}
    limits, cuts = Limits(clock or limited(None, LIMITED)), pieces_named(said.get("pieces"))
    memory = Memory(store=store, seconds=limits.clock.seconds)
    asked = Question(budget=budget, session=kind, **own)
    found = in_pieces(load_subject(path, None, {}, kind), cuts, asked, limits)
    return offered(ask(found.subject, found.asked(asked, cuts), limits, memory), limits, memory)


def _said(answer: Answer) -> Iterator[tuple[str, Any]]:
    """Each field of an answer, and each figure that is worked out from them."""
    for field in fields(answer):
        if field.name not in ("limits", "cached", "subject"):
            yield field.name, getattr(answer, field.name)
    for name in ("aside", "status", "found", "overhead", "bound", "bound_any_order", "gap", "recomputed"):
        yield name, getattr(answer, name)
    yield "problem", answer.subject.problem
    yield "notes", answer.subject.notes


@pytest.mark.parametrize("path, said", few(QUESTIONS, 6, several=True))
def test_a_kept_answer_is_the_first_in_every_field(path: Path, said: dict[str, Any], store: Store) -> None:
    first = _asked(path, said, store)
    second = _asked(path, said, store)
    assert not first.cached
    kept = not first.untouched and not first.says(PlanNote.HELD_IN_ANY_CASE) and not _of_another_graph(first, said)
    assert second.cached == kept
    for (name, one), (_, two) in zip(_said(first), _said(second), strict=True):
        assert one == two or (name == "seconds" and not kept), name


@pytest.mark.slow
def test_what_pieces_would_do_is_kept_with_a_refusal(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine there may be less time for it when the same is asked again."""
    more = limited(None, 100 * LIMITED)
    first = _asked(CNN, {"budget": "35%"}, store, more)
    assert first.says(PlanNote.LESS_IN_PIECES)
    monkeypatch.setattr("remat_cli.actions.piecing.OFFER_SECONDS", 0.0)
    assert _asked(CNN, {"budget": "35%"}, store, more.again()).notes == first.notes
    assert not _asked(CNN, {"budget": "36%"}, Store(None)).says(PlanNote.LESS_IN_PIECES)


@pytest.mark.parametrize("runtime", ["remat", "stock"])
def test_what_was_interrupted_is_never_the_answer_to_a_whole_search(runtime: str, store: Store) -> None:
    said = {"budget": "80%", "runtime": runtime}
    _asked(CNN, said, store, limited(None, LIMITED).unless(lambda: True))
    whole = _asked(CNN, said, store)
    assert not whole.cached
    assert whole.found


@pytest.mark.slow
def test_a_refusal_looks_for_the_leanest_plan_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each order that is placed is a whole model made, so what is witnessed again is not placed again."""
    placed: list[Any] = []

    def place(target: Target, one: Candidate, budget: int | None = None, clock: Clock | None = None) -> Candidate:
        if budget == 1:  # the leanest is placed as tightly as it can be
            placed.append((one.subject.problem, tuple(one.order)))
        return Target.place(target, one, budget, clock)

    monkeypatch.setattr(StockTarget, "place", place)
    assert not _asked(CNN, {"budget": "35%", "runtime": "stock"}, store).found
    assert placed
    assert len(placed) == len(set(placed))


def _of_another_graph(found: Answer, said: dict[str, Any]) -> bool:
    """Whether the answer is of the file's own ops where the question was of those that default sessions run."""
    return said.get("runtime") == "stock" and not found.subject.behaviour.optimized


@pytest.mark.parametrize("budget", few(["35%", "1%", "80%"], 1))
def test_python_hears_the_same_twice(budget: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path / "results"))

    def heard() -> Any:
        try:
            return remat.solve(CNN, budget=budget, work_limit=LIMITED).recorded
        except (remat.Infeasible, remat.NoPlan) as error:
            return type(error), str(error), error.least_peak

    assert heard() == heard()


def test_what_would_not_come_back_is_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that an entry loses makes every answer with it a new search, never another answer."""
    from remat_cli.results import memory

    as_entry = memory.as_entry
    monkeypatch.setattr(memory, "as_entry", lambda *given: {**as_entry(*given), "seconds": 0.125})
    first = _asked(CHAIN, {"budget": "6"}, store)
    assert first.seconds != 0.125
    assert list(store.entries()) == []
    monkeypatch.undo()
    again = _asked(CHAIN, {"budget": "6"}, store)
    assert not again.cached
    assert replace(again, seconds=first.seconds, limits=first.limits) == first
    (entry,) = store.entries()
    assert json.loads(entry.path.read_bytes().splitlines()[1])["method"] == "auto"
