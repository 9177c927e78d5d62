"""The cost file: what is written reads back, what is wrong is named, what is pinned stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from profiles.costfile import dump, load, parse
from profiles.costs import BadCosts, Costs, OpCost, fit_line, over_batches, rounded
from profiles.totals import Totals

OPS = {
    "conv1": OpCost(1200, 64, "measured", 1000, 0.01, 12),
    "yes": OpCost(0, 0, "view"),
    "a: {b}, 'c'": OpCost(7, 0, "estimated", note="no kernel: \n it's gone"),
}
COSTS = Costs("m.onnx", "ab12", {"batch": 8}, {"kind": "cpu", "name": "x"}, OPS, Totals(alone=1007), "2025-01-01")


def test_what_is_written_reads_back(tmp_path):
    path = tmp_path / "m.costs.yaml"
    path.write_text(dump(COSTS))
    assert load(path) == COSTS
    assert dump(load(path)) == dump(COSTS)


def test_one_line_for_each_op_sorted():
    lines = dump(COSTS).splitlines()
    named = [line.split(":")[0].strip(" '\"") for line in lines[lines.index("ops:") + 1 :]]
    assert named == [name.split(":")[0] for name in sorted(OPS)]


@pytest.mark.slow
@given(
    st.dictionaries(st.text(min_size=1), st.builds(OpCost, st.integers(0, 10**14), st.integers(0, 2**49)), min_size=1)
)
def test_any_name_survives(ops):
    costs = parse(yaml.safe_load(dump(replace(COSTS, ops=ops))), "here")
    assert costs.table() == {name: (cost.ns, cost.workspace) for name, cost in ops.items()}


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("ns: 1200", "ns: -5", "conv1: ns: -5 is negative"),
        ("ns: 1200", "ns: 1.0e+30", "absurdly large"),
        ("ns: 1200", "ns: soon", "expected a number"),
        ("ns: 1200", "ns: .nan", "expected a number"),
        ("workspace: 64", "workspace: -1", "workspace: -1 is negative"),
        ("remat-costs/1", "remat-costs/9", "remat-costs/9"),
        ("how: measured", "how: guessed", "'guessed'"),
        ("workspace: 64", "workpace: 64", "'workpace' means nothing here"),
        ("workspace: 64", "ns: 64", "'ns' stands here twice"),
        ("workspace: 64", "workspace: 64, pinned: 1", "pinned is 1"),
        ("runs: 12", "runs: 2.5", "expected a whole number"),
        ("batch: 8", "batch: 8.5", "expected a whole number"),
        ("unit: ns", "units: ns", "'units' means nothing here"),
        ("ops:", "ops: [", "not YAML"),
        ("kind: cpu", "kind: !!python/object/apply:os.system ['true']", "the tag"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, words):
    path = tmp_path / "m.costs.yaml"
    path.write_text(dump(COSTS).replace(old, new, 1))
    with pytest.raises(BadCosts, match=words) as error:
        load(path)
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadCosts, match=r"none\.yaml"):
        load(tmp_path / "none.yaml")


def test_pinned_entries_stay():
    mine = OpCost(5, 0, "set by hand", pinned=True)
    kept = COSTS.keeping_pins(replace(COSTS, ops={"conv1": mine, "gone": mine, "yes": OpCost(9)}))
    assert kept.ops == {**OPS, "conv1": mine}


def test_batches_are_fitted_and_read_off():
    at = {
        size: replace(COSTS, dims={"batch": size}, ops={"conv1": OpCost(100 + 50 * size, 8 * size)}) for size in (1, 8)
    }
    costs = over_batches(at, "batch")
    assert costs.table() == {"conv1": (500, 64)}
    assert costs.for_dims({"batch": 32}).table() == {"conv1": (1700, 256)}
    assert costs.for_dims({"batch": 1}).table() == {"conv1": (150, 8)}
    with pytest.raises(BadCosts, match="batch=8"):
        costs.for_dims({"length": 32})
    with pytest.raises(BadCosts, match="other dimensions"):
        COSTS.for_dims({"batch": 16})


def test_fits_are_in_the_file(tmp_path):
    at = {size: replace(COSTS, dims={"batch": size}, ops={"conv1": OpCost(100 * size)}) for size in (1, 8, 32)}
    path = tmp_path / "m.costs.yaml"
    path.write_text(dump(over_batches(at, "batch")))
    assert load(path).at_batch(16).table() == {"conv1": (1600, 0)}


@given(st.dictionaries(st.integers(1, 512), st.integers(0, 10**9), min_size=2, max_size=6))
def test_a_fit_is_least_squares_where_that_is_not_negative(points):
    base, slope = fit_line(points)
    want_slope, want_base = np.polyfit(list(points), list(points.values()), 1)
    assert base >= 0
    assert slope >= 0
    if want_base > 1 and want_slope > 1:
        assert (base, slope) == pytest.approx((want_base, want_slope), rel=1e-4)


@given(st.integers(1, 10**15))
def test_rounding_keeps_four_digits(number):
    assert rounded(number) == pytest.approx(number, rel=5.1e-4)
    assert len(str(rounded(number)).rstrip("0")) <= 4


def test_totals_that_this_version_does_not_know_or_cannot_use_stay_in_the_file(tmp_path):
    path = tmp_path / "m.costs.yaml"
    odd = {"alone": "soon", "default_peaks": [1, 2], "of_tomorrow": [3], "waited": True, "peak": 5, "launch": -1}
    path.write_text(dump(replace(COSTS, whole=Totals.of(odd))))
    whole = load(path).whole
    assert (whole.alone, whole.waited, whole.default_peaks, whole.peak) == (None, None, (1, 2), 5)
    assert whole.launch is None
    assert whole.as_mapping() == odd
    assert load(path) == replace(COSTS, whole=Totals.of(odd))
