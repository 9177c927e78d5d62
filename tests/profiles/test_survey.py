"""What is said of a graph's costs beside the costs themselves."""

from __future__ import annotations

from profiles.costs import OpCost
from profiles.records import outliers
from profiles.survey import Ops
from tests.profiles.making import floats, signature


def test_a_class_that_is_unlike_alone_is_named_if_it_matters():
    """Twice alone is usual here; Sub takes ten times that, and Neg too, but Neg takes too little to be worth a word."""
    kinds = {"a": "Add", "b": "Add", "c": "Sub", "d": "Neg"}
    ops = Ops({name: signature(kind, [floats(4)], [floats(4)]) for name, kind in kinds.items()})
    alone = {"a": OpCost(50_000), "b": OpCost(50_000), "c": OpCost(1_000), "d": OpCost(10)}
    inside = {"a": OpCost(100_000), "b": OpCost(100_000), "c": OpCost(20_000), "d": OpCost(200)}
    assert [words.split()[0] for words in outliers(ops, alone, inside)] == ["Sub"]
    assert outliers(ops, alone, alone) == []
