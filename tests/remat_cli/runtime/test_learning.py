"""Places that are learnt from a run, and how little of them the user's process keeps."""

from __future__ import annotations

import random
from array import array

import pytest

from remat_cli.runtime import learning
from remat_cli.runtime.learning import Events, learn_places
from remat_cli.runtime.table import PlacesTable
from solvers.placement.placed import Placement, holds


def run_of(seed: int, requests: int = 60) -> Events:
    """A run's requests, most of which are given back in any order."""
    draw = random.Random(seed)
    sizes, addresses, held = array("q"), array("Q"), []
    for number in range(requests):
        sizes.append(64 * draw.randint(0, 40))
        addresses.append(4096 * (number + 1))
        held.append(addresses[-1])
        while len(held) > draw.randint(1, 8):
            sizes.append(-1)
            addresses.append(held.pop(draw.randrange(len(held))))
    return Events(sizes, addresses)


def test_a_table_is_the_placement_in_16_bytes_a_request() -> None:
    placement = Placement(1 << 40, 5, ((64, 0), (0, 128), (2**33, 2**34)))
    content = PlacesTable.of(placement).content()
    assert len(content) == 24 + 16 * 3
    assert PlacesTable.read(content).placement() == placement
    for cut in (0, 8, 24, len(content) - 1):
        with pytest.raises(ValueError, match="table"):
            PlacesTable.read(content[:cut])


@pytest.mark.parametrize("seed", range(4))
def test_places_learnt_elsewhere_hold_the_run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = run_of(seed)
    here = learn_places(seen)
    monkeypatch.setattr(learning, "HERE", 0)
    monkeypatch.setattr(learning, "pack", None)  # this process places nothing
    elsewhere = learn_places(seen)
    for found in (here, elsewhere):
        assert holds(seen.lifetimes(), found.placement())
    assert elsewhere.block <= here.block


def test_where_no_process_can_be_had_places_are_found_here(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = run_of(7)
    monkeypatch.setattr(learning, "HERE", 0)
    monkeypatch.setattr(learning.sys, "executable", "/none/python")
    assert holds(seen.lifetimes(64), learn_places(seen, 64).placement())


def test_what_is_not_given_back_lives_to_the_end() -> None:
    seen = Events(array("q", [100, 200, -1, 300]), array("Q", [1, 2, 1, 1]))
    assert [column.tolist() for column in seen.lifetimes(64)] == [[0, 1, 2], [2, 3, 3], [128, 256, 320]]
