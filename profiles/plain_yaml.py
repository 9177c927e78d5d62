"""YAML of the plain kind that remat's files are in, looked through before anything is built from it.

Invariant: text that passes has no anchors, aliases or tags, no key twice, and is nested no deeper than was said: so it
takes about as much memory as it has bytes, and means one thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come: `parts`: how many keys and values of a mapping have."""

    mapping: bool
    keys: set[str] = field(default_factory=set)
    parts: int = 0

    def stood(self, event: Any) -> bool:
        """Whether the next part is a key that stood here before."""
        self.parts += 1
        if not self.mapping or self.parts % 2 == 0 or not isinstance(event, yaml.ScalarEvent):
            return False
        known = len(self.keys)
        self.keys.add(event.value)
        return len(self.keys) == known


def not_plain(text: str, deepest: int, loader: Any) -> tuple[int, str] | None:
    """The line and the words of what is not plain; None where all is. Raises yaml.YAMLError for what is not YAML."""
    within: list[_Open] = []
    event: Any
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None):
            return line, f"the anchor or alias {event.anchor!r} means nothing here; write it out"
        if getattr(event, "tag", None):
            return line, f"the tag {event.tag!r} means nothing here"
        if isinstance(event, yaml.CollectionEndEvent):
            within.pop()
            continue
        if within and within[-1].stood(event):
            return line, f"{event.value!r} stands here twice"
        if isinstance(event, yaml.CollectionStartEvent):
            within.append(_Open(isinstance(event, yaml.MappingStartEvent)))
        if len(within) > deepest:
            return line, f"it is nested more than {deepest} deep"
    return None
