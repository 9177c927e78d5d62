"""What the methods over chains can be told."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.options import option


@dataclass(frozen=True, slots=True)
class Divided:
    """How finely the memory is divided: more is closer to the optimum, and slower."""

    slots: int | None = option(None, "units the memory is divided into; by default as many as serve the method")


DIVIDED = Divided()
