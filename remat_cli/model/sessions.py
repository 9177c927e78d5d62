"""The kinds of session that a plan can be made for, as values.

Invariant: what differs between kinds is read from a field of theirs. What plans of a kind are counted by is its
target's (`planning.targets`).
"""

from __future__ import annotations

from dataclasses import dataclass

REMAT, STOCK = "remat", "stock"  # values lie where the plan says, or where the runtime by itself puts them


@dataclass(frozen=True, slots=True)
class Session:
    """`name`: as files and `--json` call it. `runtime`: as it is asked for.

    `runs`: how many runs tell what it needs, as where memory patterns are in use the second differs from the first.
    `keeps_order`: it runs a file's ops as they stand, in their order. `grows`: its arena grows as it likes, so that
    what the process comes to hold is foretold about. `takes_pieces`: plans of ops in pieces are made for it; optimizers
    would not leave the pieces as they are. `allowed_share`: by how much a process may hold more than is said.
    """

    name: str
    runtime: str
    runs: int = 1
    keeps_order: bool = True
    grows: bool = False
    takes_pieces: bool = True
    allowed_share: float = 0.05


STRICT = Session("strict", REMAT)
DEFAULT = Session("default", STOCK, runs=2, keeps_order=False, grows=True, takes_pieces=False, allowed_share=0.1)

KINDS = {kind.runtime: kind for kind in (STRICT, DEFAULT)}
RUNTIMES = tuple(KINDS)
RUNTIME_OF = {kind.name: kind.runtime for kind in KINDS.values()}  # by the name that files have


def kind_of(name: str) -> Session | None:
    """The kind that files call so."""
    return next((kind for kind in KINDS.values() if kind.name == name), None)
