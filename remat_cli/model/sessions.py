"""The kinds of session that a plan can be made for, as values.

Invariant: what a kind decides is read from its fields, in one place each: `robust` by `rewrite`, `allocator` by
`planning.targets` and by `runtime`, `name` and `runs` by `verify`, `grows` by `saying`. Nothing else asks which session
it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Session:
    """`robust`: the model must survive optimizers that merge, fuse and reorder. `allocator`: what places its values.

    `capped`: whether it runs in an arena that may not exceed the budget. `runs`: how many runs tell what it needs, as
    where memory patterns are in use the second differs from the first.
    """

    name: str
    allocator: str
    robust: bool = False
    capped: bool = False
    runs: int = 1

    @property
    def grows(self) -> bool:
        """Whether its arena grows as it likes, so that what the process comes to hold is foretold about."""
        return self.allocator == OWN


# places by the plan's table, in one capped region, or by the runtime itself
PLANNED, ARENA, OWN = "planned", "arena", "own"

STRICT = Session("strict", PLANNED)
CAPPED = Session("strict", ARENA, capped=True)
DEFAULT = Session("default", OWN, robust=True, runs=2)

KINDS = {(kind.name, kind.allocator): kind for kind in (STRICT, CAPPED, DEFAULT)}
SESSIONS, ALLOCATORS = (tuple(dict.fromkeys(names)) for names in zip(*KINDS, strict=True))


def kind_of(name: str, allocator: str | None = None) -> Session | None:
    """The kind of these names; without an allocator, the first that the session has."""
    named = (kind for kind in KINDS.values() if kind.name == name)
    return next(named, None) if allocator is None else KINDS.get((name, allocator))
