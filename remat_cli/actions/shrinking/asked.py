"""What is asked of `shrink`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remat_cli.actions.shrinking.ways import PYTHON, TARGETS
from remat_cli.arguments import as_word
from remat_cli.errors import Usage, meant
from remat_cli.model.quantities import parse_share
from remat_cli.usual import SLOWER

MAX_SLOWER = parse_share(SLOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkQuestion:
    """`feeds`: inputs, or a file of them; by default random and valid. `slower`: the share of time that less memory may
    cost. `target`: what is to run the model. `also`: other sizes that the same file has to run."""

    feeds: Path | Mapping[str, Any] | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    slower: float = MAX_SLOWER
    target: str = PYTHON
    also: tuple[Mapping[str, int], ...] = ()
    seed: int = 0

    def check(self) -> None:
        if self.target not in TARGETS:
            raise Usage(f"there is no target '{as_word(self.target)}'; {meant(as_word(self.target), TARGETS)}")
