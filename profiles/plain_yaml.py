"""YAML of the plain kind that remat's files are in, looked through before anything is built from it.

Invariant: text that passes has no anchors, aliases or tags, and is nested no deeper than was said: so it takes about as
much memory as it has bytes.
"""

from __future__ import annotations

from typing import Any

import yaml


def not_plain(text: str, deepest: int, loader: Any) -> tuple[int, str] | None:
    """The line and the words of what is not plain; None where all is. Raises yaml.YAMLError for what is not YAML."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1
        if depth > deepest:
            return line, f"it is nested more than {deepest} deep"
        if getattr(event, "anchor", None):
            return line, f"the anchor or alias {event.anchor!r} means nothing here; write it out"
        if getattr(event, "tag", None):
            return line, f"the tag {event.tag!r} means nothing here"
    return None
