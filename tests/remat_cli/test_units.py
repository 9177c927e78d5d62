"""Sizes and times as the contract of the command spells them."""

from __future__ import annotations

import pytest

from remat_cli.model.quantities import parse_budget, parse_seconds, parse_share
from remat_cli.units import show_bytes, show_time

SIZES = {
    "16GB": 16 * 10**9,
    "16GiB": 16 * 2**30,
    "16gib": 16 * 2**30,
    "1.5 MB": 1_500_000,
    "123": 123,
    "2KB": 2000,
    "1TiB": 2**40,
    "0": 0,
}


@pytest.mark.parametrize("text, expected", SIZES.items())
def test_sizes(text: str, expected: int) -> None:
    assert parse_budget(text).bytes(7) == expected


def test_a_share_of_the_peak_is_rounded_down() -> None:
    assert parse_budget("75%").bytes(1001) == 750
    assert parse_budget("12.5%").bytes(800) == 100


@pytest.mark.parametrize("text", ["12345678901234567891", "123456789012345.25GB", "0.1%", "33.3333%", "1.5GiB"])
def test_a_budget_is_written_in_all_its_digits(text: str) -> None:
    """Names of files have it, and two budgets are not called alike."""
    written = str(parse_budget(text))
    assert parse_budget(written) == parse_budget(text)
    assert written.rstrip("B") == text.rstrip("B")


@pytest.mark.parametrize("text", ["", "GB", "-5GB", "16 G B", "16XB", "1e9", "nan", "%"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse_budget(text)


@pytest.mark.parametrize("text, expected", {"90s": 90, "5m": 300, "1h": 3600, "500ms": 0.5, "7": 7}.items())
def test_times(text: str, expected: float) -> None:
    assert parse_seconds(text) == expected


def test_shares() -> None:
    assert parse_share("0.1%") == parse_share("0.001") == 0.001


def test_showing() -> None:
    assert show_bytes(16 * 10**9) == "16GB"
    assert show_bytes(999) == "999B"
    assert show_bytes(1_234_567) == "1.235MB"
    assert show_time(1_234) == "1.234us"
    assert show_time(2.5e9) == "2.5s"


@pytest.mark.parametrize("said", ["160KB", "16GB", "1.5GiB", "16KiB", "96.5MB", "70%", "17B"])
def test_a_budget_is_said_in_the_unit_that_was_asked(said: str) -> None:
    assert str(parse_budget(said)) == said
