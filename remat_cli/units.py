"""Sizes and times as people read them."""

from __future__ import annotations


def show_bytes(count: int) -> str:
    """Three significant digits in powers of ten, as `16GB` is read."""
    for power, unit in enumerate(("B", "KB", "MB", "GB", "TB")):
        if abs(count) < 1000 ** (power + 1) or unit == "TB":
            return f"{count}B" if unit == "B" else f"{count / 1000**power:.4g}{unit}"
    raise AssertionError


def show_time(nanoseconds: float) -> str:
    for unit, scale in (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if abs(nanoseconds) < 1000 * scale or unit == "s":
            return f"{nanoseconds / scale:.4g}{unit}"
    raise AssertionError


def show_share(share: float) -> str:
    """Two significant digits of a percentage, as a person writes it: 0.034%, 1.5%, 12%."""
    percent = 100 * share
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def show_change(before: float, after: float, digits: int = 2) -> str:
    """By which share of what was before; nothing where that was nothing."""
    return f"{after / before - 1:+.{digits}%}" if before else ""
