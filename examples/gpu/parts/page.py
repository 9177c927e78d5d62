"""The evidence as a page of Markdown: a table for each kind of finding, and what failed.

Invariant: nothing stands on the page that is not in the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

LEVELS = 2  # of a finding that get columns of their own


def page(evidence: Mapping[str, Any]) -> str:
    lines = ["# What was found on the device", "", *_head(evidence), ""]
    results: Mapping[str, Any] = evidence["results"]
    kinds = dict.fromkeys(key.partition("/")[0] for key in results)
    for kind in kinds:
        lines += [f"## {kind}", ""]
        for key, entry in results.items():
            if key.partition("/")[0] == kind:
                lines += [*_entry(key, entry), ""]
    return "\n".join(lines)


def _head(evidence: Mapping[str, Any]) -> Iterator[str]:
    results = evidence["results"].values()
    done = sum(entry["status"] == "done" for entry in results)
    broken = len(results) - done
    yield f"Device asked for: {evidence['device']}; {done} of {evidence['wanted']} parts done, {broken} broken off."
    if evidence["device"] == "cpu":
        yield "**This was not run on a GPU.**"
    yield f"Revision {evidence['revision']}; {evidence['began']}, {evidence['seconds']:.0f} s in all."


def _entry(key: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {key} ({entry['status']}, {entry['seconds']:.1f} s)"
    if entry.get("why"):
        yield f"\n```\n{entry['why']}\n```"
    yield ""
    rows = [pair for found in entry["found"] for pair in found.items()]
    if rows:
        yield "| | |"
        yield "| --- | --- |"
        for name, value in rows:
            yield f"| {name} | {_cell(value)} |"


def _cell(value: Any, level: int = LEVELS) -> str:
    if isinstance(value, Mapping):
        said = "; ".join(f"{name} {_cell(one, level - 1)}" for name, one in value.items())
        return said if level == LEVELS else f"({said})"
    if isinstance(value, int) and abs(value) >= 1_000_000 and not isinstance(value, bool):
        return f"{value / 1e6:,.2f}M"
    return json.dumps(value).replace("|", "\\|") if isinstance(value, (list, bool)) or value is None else str(value)
