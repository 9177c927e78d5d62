"""The options of the methods over chains."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.options import option


@dataclass(frozen=True, slots=True)
class Divided:
    """The number of slots that memory is divided into: more slots are closer to the optimum, and slower."""

    slots: int | None = option(None, "units the memory is divided into; by default as many as serve the method")


DIVIDED = Divided()
