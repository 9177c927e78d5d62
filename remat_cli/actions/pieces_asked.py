"""How ops in pieces are asked for: auto, exact, off, or the values that are to be cut."""

from __future__ import annotations

from dataclasses import dataclass

from remat_cli.errors import Usage

AUTO, EXACT, OFF = "auto", "exact", "off"


@dataclass(frozen=True, slots=True)
class Listed:
    """A value that is to be cut, into how many pieces, and along which axis if that is said."""

    value: str
    pieces: int
    axis: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecesAsked:
    """`how`: auto, exact or off; `listed`: instead, the values that are cut. `largest`: of any value, in bytes."""

    how: str = OFF
    listed: tuple[Listed, ...] = ()
    largest: int | None = None

    @property
    def wanted(self) -> bool:
        return self.how != OFF or bool(self.listed) or self.largest is not None

    @property
    def words(self) -> str:
        """What was asked for, as plan files say it."""
        largest = "" if self.largest is None else f"{self.largest} bytes"
        listed = ",".join(
            f"{one.value}{'' if one.axis is None else f'@{one.axis}'}={one.pieces}" for one in self.listed
        )
        return "; ".join(filter(None, (listed or self.how.removeprefix(OFF), largest)))

    @property
    def exact(self) -> bool:
        return self.how == EXACT


WHOLE = PiecesAsked()


def pieces_named(text: str | None, largest: int | None = None) -> PiecesAsked:
    """What `--pieces` says: auto, exact, off, or VALUE=N and VALUE@AXIS=N, separated by commas."""
    if text is None or text in (AUTO, EXACT, OFF):
        return PiecesAsked(how=text or OFF, largest=largest)
    return PiecesAsked(listed=tuple(_listed(part) for part in text.split(",")), largest=largest)


def _listed(text: str) -> Listed:
    name, equals, count = text.rpartition("=")
    value, at, axis = name.rpartition("@")
    if not (at and axis.isdigit()):
        value, axis = name, ""
    if not equals or not value or not count.isdigit() or int(count) < 2:
        raise Usage(f"--pieces {text}: write auto, exact, off, or a value and into how many pieces, as in logits=16")
    return Listed(value, int(count), int(axis) if axis else None)
