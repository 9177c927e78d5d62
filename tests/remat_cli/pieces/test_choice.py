"""Which pieces are chosen: how far short searches go on to finer ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from remat_cli.actions.piece_choice import _cheapest_of, _held, _walked, cheapest, leanest
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.subject import Subject
from remat_cli.zoo.build import build
from solvers.clock import limited
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits
from tests.remat_cli.pieces.test_plans import UNET

WORK = 20_000  # moves


@pytest.fixture(scope="module")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    path: Path = tmp_path_factory.mktemp("unet") / "unet.onnx"
    onnx.save(build("unet", training=False, **UNET), path)
    return load_subject(path, None, {})


def tried(start: Subject, budget: int) -> int:
    """How many finer ones are asked for, where each is like the first."""
    left = [start] * 9
    cheapest(start, iter(left.pop, None), budget, Limits(limited(moves=WORK)))
    return 9 - len(left)


def test_finer_pieces_are_tried_while_plans_are_dear(unet: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room by the bound is not room: a short search found dear plans of whole ops alone, and no others were tried."""
    monkeypatch.setattr("remat_cli.actions.piece_choice.ROOM_SHARE", 1.0)
    budget = 2 * peak_bound(unet.problem).peak
    assert tried(unet, budget) == 0
    monkeypatch.setattr("remat_cli.actions.piece_choice.CHEAP_SHARE", -1.0)  # nothing is
    assert tried(unet, budget) > 1


def test_what_kernels_take_besides_is_each_ones_own(unet: Subject) -> None:
    """A budget that the first cannot keep to, since its kernels take too much beside the session."""
    beside = replace(unet, named=replace(unet.named, aside=10 * peak_bound(unet.problem).peak))
    found = cheapest(beside, iter([unet]), 10 * peak_bound(unet.problem).peak, Limits(limited(moves=WORK)))
    assert found.subject is unet
    assert found.plans


def test_an_order_that_a_search_for_less_has_met_is_a_plan_to_begin_with(
    unet: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many ops are planned for less than the budget. What was found above that was thrown away, though it kept to the
    budget, and then finer pieces were planned, for which nothing was found."""
    met = _walked(unet, Limits(limited(moves=WORK)))
    assert not met.found
    monkeypatch.setattr("remat_cli.actions.piece_choice._planned", lambda *_: met)
    for budget, plans in ((_held(met), 1), (_held(met) - 1, 0)):
        assert len(cheapest(unet, iter([]), budget, Limits(limited(moves=WORK))).plans) == plans


@pytest.mark.parametrize(("bound", "may_win"), [(90, True), (110, False)])
def test_whole_ops_may_win_while_no_bound_denies_it(
    unet: Subject, monkeypatch: pytest.MonkeyPatch, bound: int, may_win: bool
) -> None:
    """A walk over whole ops that holds much more says little: SegNet's held 8% more in pieces than without."""
    finer = replace(unet)
    held = {id(unet): 140, id(finer): 100}
    monkeypatch.setattr("remat_cli.actions.piece_choice._held_in_time", lambda walked, _: held[id(walked.subject)])
    monkeypatch.setattr("remat_cli.actions.piece_choice._least", lambda *_: bound)
    found = leanest(unet, iter([finer]), Limits(limited(moves=WORK)))
    assert found.subject is finer
    assert found.whole_may_win == may_win


def test_of_dear_plans_that_cost_alike_the_one_with_room_is_chosen(
    unet: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short searches left DenseNet-121 at +97% with whole ops and in pieces alike; in pieces it went on to +31%."""
    walked = _walked(unet, Limits(limited(moves=WORK)))
    tight, roomy = replace(walked), replace(walked)
    held, more = {id(tight): 300, id(roomy): 250}, {id(tight): 0.97, id(roomy): 0.98}
    cost = unet.before().cost
    monkeypatch.setattr("remat_cli.actions.piece_choice._held", lambda one: held[id(one)])
    monkeypatch.setattr("remat_cli.actions.piece_choice._more", lambda one: more[id(one)] * cost)
    assert _cheapest_of({0: tight, 1: roomy}) == 1
    more[id(tight)] = 0.5
    assert _cheapest_of({0: tight, 1: roomy}) == 0
