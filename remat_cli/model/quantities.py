"""Budgets, sizes and times, read as people write them. Invariant: inside they are integers of bytes, or seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

KINDS = (("B", 1000), ("iB", 1024))
BYTES = {"": 1, "B": 1}
BYTES |= {f"{prefix}B": 1000**power for power, prefix in enumerate("KMGTP", start=1)}
BYTES |= {f"{prefix}IB": 1024**power for power, prefix in enumerate("KMGTP", start=1)}
SPELLED = {f"{prefix}{kind}": base**power for power, prefix in enumerate("KMGTP", start=1) for kind, base in KINDS}
SECONDS: dict[str, Fraction] = {
    "": Fraction(1),
    "MS": Fraction(1, 1000),
    "S": Fraction(1),
    "M": Fraction(60),
    "H": Fraction(3600),
}
COUNTS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
DAYS = {"D": 1, "W": 7}
QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z%]*)\s*")


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes, or a share of the peak without recomputation. `unit`: the unit that the user wrote."""

    amount: Fraction
    relative: bool = False
    unit: str = field(default="", compare=False)

    def bytes(self, baseline_peak: int) -> int:
        return int(self.amount * baseline_peak) if self.relative else int(self.amount)

    def enough(self, size: int, base: int) -> str:
        """The least round number in the unit of this budget that is so many bytes or more; plain bytes are not rounded.

        `base`: the bytes that a share is a share of. Shares are whole percents, unless that would be everything.
        """
        if self.relative:
            shares = [Fraction(-(-parts * size // base), parts) for parts in (100, 1000, 10**6)]
            return f"{_decimal(100 * next((share for share in shares if share < 1), shares[0]))}%"
        unit = BYTES[self.unit.upper()]
        digits = 0 if unit == 1 else 3 - len(str(max(1, size // unit)))
        step = unit / Fraction(10) ** digits
        return f"{_decimal(-(-size // step) * step / unit)}{self.unit}"

    def __str__(self) -> str:
        """The budget as people write it and as names of files have it: 70%, 16GB, 1.5GiB, or plain bytes."""
        if self.relative:
            return f"{_decimal(self.amount * 100)}%"
        units = [unit for unit, size in SPELLED.items() if size <= self.amount and 100 * self.amount % size == 0]
        spelled = {unit: _decimal(self.amount / SPELLED[unit]) for unit in units} or {"B": _decimal(self.amount)}
        unit = min(spelled, key=lambda unit: (len(spelled[unit]), -SPELLED.get(unit, 1)))  # 160KB, not 156.25KiB
        return f"{spelled[unit]}{unit}"


def _decimal(number: Fraction) -> str:
    """To ten decimals, and in all its digits before them."""
    whole, rest = divmod(round(number * 10**10), 10**10)
    return f"{whole}.{rest:010}".rstrip("0").rstrip(".")


def parse_budget(text: str) -> Budget:
    """`16GB`, `1.5GiB`, `123456` or `75%`; ValueError says what is meant instead."""
    number, unit = _split(text)
    if unit == "%":
        return Budget(number / 100, relative=True, unit=unit)
    if unit not in BYTES:
        near = f"did you mean '{text.strip()}B'? " if f"{unit}B" in BYTES else ""
        raise ValueError(
            f"'{text}' is not a size: {near}write 16GB (10^9), 16GiB (2^30), plain bytes, or 75% of the peak"
        )
    if not unit and number.denominator > 1:  # a plain number is bytes, which are whole
        meant = f"{_decimal(100 * number)}%" if number < 1 else f"{_decimal(number)}GB"
        raise ValueError(f"'{_decimal(number)}' is no number of bytes: did you mean '{meant}'?")
    return Budget(number * BYTES[unit], unit=unit.replace("IB", "iB"))


@dataclass(frozen=True, slots=True)
class Spread:
    """Budgets at even distances from one to another, both included; without ends, over the whole range that matters."""

    count: int
    low: Budget | None = None
    high: Budget | None = None


MOST_BUDGETS = 1000
MOST_DIGITS = 30
Budgets = tuple[Budget | Spread, ...]


def parse_budgets(text: str) -> Budgets:
    """`50%,60%,8GB`, `30%..100%/8`, or both. `/8` alone: that many budgets over the whole range that matters."""
    return tuple(_spread(part) if "/" in part or ".." in part else parse_budget(part) for part in text.split(","))


def _spread(text: str) -> Spread:
    ends, _, count = text.partition("/")
    low, _, high = ends.partition("..")
    if not count.strip().isdigit() or not 1 < int(count) <= MOST_BUDGETS:
        raise ValueError(f"'{text}' is no range of budgets: write 30%..100%/8, of 2 to {MOST_BUDGETS} budgets")
    if not ends.strip():
        return Spread(int(count))
    least, most = parse_budget(low), parse_budget(high)
    if least.relative == most.relative and least.amount > most.amount:
        raise ValueError(f"'{text}' goes down: write the smaller budget first, {high}..{low}/{count}")
    return Spread(int(count), least, most)


def parse_bytes(text: str) -> int:
    """A number of bytes: a budget that is not a share."""
    found = parse_budget(text)
    if found.relative:
        raise ValueError(f"'{text}' is not a number of bytes: write 500MB or 2GiB")
    return int(found.amount)


def parse_seconds(text: str) -> float:
    """`90s`, `5m`, `1h`, `500ms` or plain seconds."""
    number, unit = _split(text)
    if unit not in SECONDS:
        raise ValueError(f"'{text}' is not a time: write 90s, 5m or 1h")
    return float(number * SECONDS[unit])


def parse_count(text: str) -> int:
    """`5M`, `200k` or a plain number."""
    number, unit = _split(text)
    if unit not in COUNTS or number * COUNTS[unit] < 1:
        raise ValueError(f"'{text}' is not a number of moves: write 5M or 200k")
    return int(number * COUNTS[unit])


def parse_age(text: str) -> float:
    """`30d`, `2w`, or a time; in seconds."""
    number, unit = _split(text)
    if unit in DAYS:
        return float(number * DAYS[unit] * 86400)
    if unit not in SECONDS:
        raise ValueError(f"'{text}' is no age: write 30d, 2w or 12h")
    return parse_seconds(text)


def parse_share(text: str) -> float:
    """`0.1%` or 0.001."""
    number, unit = _split(text)
    if unit not in ("", "%"):
        raise ValueError(f"'{text}' is not a share: write 0.1% or 0.001")
    return float(number / 100 if unit == "%" else number)


def _split(text: str) -> tuple[Fraction, str]:
    """A number and its unit; for a text without a number, a unit that does not exist."""
    match = QUANTITY.fullmatch(text)
    if match and len(match[1].partition(".")[0]) > MOST_DIGITS:
        raise ValueError(f"a number of more than {MOST_DIGITS} digits is meant for nothing")
    return (Fraction(match[1]), match[2].upper()) if match else (Fraction(0), "?")
