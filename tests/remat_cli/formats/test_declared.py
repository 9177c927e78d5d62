"""JSON is read as what type hints declare, or refused where it is something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from remat_cli.formats.declared import Undeclared, declared


@dataclass(frozen=True)
class Leaf:
    size: int
    share: float | None = None


@dataclass(frozen=True)
class Branch:
    first: Leaf
    rest: tuple[Leaf | str, ...] = ()
    sizes: dict[str, int] | None = None


def test_what_is_declared_comes_out() -> None:
    given = {"first": {"size": 1, "share": 2}, "rest": [{"size": 3}, "four"], "sizes": {"a": 5}, "more": None}
    assert declared(Branch, given) == Branch(Leaf(1, 2), (Leaf(3), "four"), {"a": 5})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "it is not an object"),
        ({}, "'first' is missing"),
        ({"first": {"size": True}}, "'first.size' is of the wrong type: True"),
        ({"first": {"size": 1.0}}, "'first.size' is of the wrong type: 1.0"),
        ({"first": {"size": 1, "share": float("nan")}}, "'first.share' is nan"),
        ({"first": {"size": 1}, "rest": {}}, "'rest' is not a list"),
        ({"first": {"size": 1}, "rest": [7]}, "'rest[0]' is of the wrong type: 7"),
        ({"first": {"size": 1}, "sizes": {"a": "b"}}, "'sizes['a']' is of the wrong type: 'b'"),
    ],
)
def test_what_is_something_else_is_refused_with_its_place(given: Any, says: str) -> None:
    with pytest.raises(Undeclared) as error:
        declared(Branch, given)
    assert str(error.value) == says


def test_exactly_the_fields_and_no_number_below() -> None:
    assert declared(Leaf, {"size": 0, "share": None}, exact=True, least=0) == Leaf(0)
    for given in ({"size": 0}, {"size": 0, "share": None, "more": 1}, {"size": -1, "share": None}):
        with pytest.raises(Undeclared):
            declared(Leaf, given, exact=True, least=0)
