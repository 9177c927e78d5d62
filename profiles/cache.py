"""Measurements kept between runs, one file for each device, driver, thread count and library version.

Invariant: every line is appended whole and at once, so that a kill loses nothing measured; a torn or foreign line is
ignored. Several processes may append to one file. An op that leaves outputs out has the figures of the same op with all
of them, where those are known: making them is a small part of its work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from profiles.device import Device
from profiles.measure import BUSY, Timing
from profiles.place import kept
from profiles.probe import Probe
from profiles.signature import RECURRENT, OpSignature

CLOCK = 2  # the version of the measuring method; figures of another version are in another file


class Cache:
    """Timings by signature key, refusals by signature key, and whole-graph runs by the graph's key."""

    def __init__(self, device: Device, folder: Path | None, fresh: bool = False) -> None:
        self.path = folder / f"{device.kind}-{device.key}-{CLOCK}.jsonl" if folder else None
        self.timings: dict[str, Timing] = {}
        self.refusals: dict[str, str] = {}
        self.wholes: dict[str, dict[str, Any]] = {}
        self.seen: dict[str, dict[str, Any]] = {}  # records of runs with a time for each kernel
        self.dates: dict[str, str] = {}
        self.probe: Probe | None = None  # the probe's present time
        self.probes: dict[str, int] = {}  # the probe's ns at the time when the figures under each key were measured
        # the share of the time that threads waited for a processor in those measurements
        self.waited: dict[str, float] = {}
        self.doubted: dict[str, Timing] = {}  # figures to be measured again
        self.session_ns: int | None = None  # the time of one run of a session before its first op
        self.families: dict[str, dict[str, tuple[str, ...]]] = {}  # family -> key -> outputs, for all known signatures
        if self.path and not fresh:
            for line in _lines(self.path):
                self._take(line)
        if self.path and not self.path.exists():
            self._append({"device": device.described()})

    def keep_timing(self, signature: OpSignature, timing: Timing, date: str) -> None:
        earlier = self.doubted.get(signature.key, timing)  # interference only ever makes an op look slower
        if earlier.ns < timing.ns:
            timing = replace(timing, ns=earlier.ns, spread=earlier.spread, runs=earlier.runs)
        self._note({**_named(signature), "date": date, **asdict(timing), **self._probed()})

    def keep_refusal(self, signature: OpSignature, reason: str, date: str) -> None:
        self._note({**_named(signature), "date": date, "refused": reason})

    def key_of(self, signature: OpSignature) -> str:
        """The key of the signature's figures: its own, or that of the same op with more outputs, if only that is
        known."""
        if signature.key in self.timings or signature.key in self.refusals:
            return signature.key
        if signature.op_type in RECURRENT:
            return signature.key
        wanted = signature.results
        fuller = (key for key, made in self.families.get(signature.family, {}).items() if _covers(made, wanted))
        return min(fuller, default=signature.key)

    def timing(self, signature: OpSignature) -> Timing | None:
        return self.timings.get(self.key_of(signature))

    def refusal(self, signature: OpSignature) -> str | None:
        return self.refusals.get(self.key_of(signature))

    def keep_session(self, ns: int) -> None:
        self._note({"session_ns": ns})

    def keep_whole(self, key: str, whole: dict[str, Any], date: str) -> None:
        self._note({"graph": key, "date": date, "whole": whole, **self._probed()})

    def keep_seen(self, key: str, seen: dict[str, Any], date: str) -> None:
        self._note({"graph": key, "date": date, "seen": seen})

    def _probed(self) -> dict[str, int]:
        return {} if self.probe is None else {"probe": self.probe.ns}

    def slowness(self, keys: Iterable[str]) -> dict[str, float]:
        """The probe's time when the figures under these keys were measured, relative to now."""
        now = self.probe
        return {key: self.probes[key] / now.ns for key in keys if key in self.probes} if now else {}

    def disturbed(self, keys: Iterable[str]) -> dict[str, float]:
        """The share of the time that threads waited when the figures under these keys were measured, where they wait
        far less now."""
        now = self.probe
        found = {key: self.waited.get(key, 0.0) for key in keys}
        return {key: share for key, share in found.items() if now and share > max(BUSY, 2 * now.waited)}

    def forget(self, keys: Iterable[str]) -> None:
        """Mark these figures to be measured again; the least time of an op stays."""
        for key in keys:
            if timing := self.timings.pop(key, None):
                self.doubted[key] = timing
            self.wholes.pop(key, None)

    def _note(self, line: dict[str, Any]) -> None:
        self._take(line)
        self._append(line)

    def _take(self, line: dict[str, Any]) -> None:
        key = str(line.get("signature") or line.get("graph") or "")
        try:
            if "session_ns" in line:
                self.session_ns = max(0, int(line["session_ns"]))
                return
            if "whole" in line:
                self.wholes[key] = dict(line["whole"])
            elif "seen" in line:
                self.seen[key] = dict(line["seen"])
            elif "refused" in line:
                self.refusals[key] = str(line["refused"])
            elif "ns" in line:
                spent = (int(line["ns"]), float(line["spread"]), int(line["runs"]), int(line["workspace"]))
                waited = float(line.get("waited", 0.0))
                if min(*spent, waited) >= 0:
                    self.timings[key] = Timing(*spent, waited)
            if "family" in line:
                self.families.setdefault(str(line["family"]), {})[key] = tuple(line["results"])
            self.dates[key] = str(line.get("date", ""))
            if "probe" in line and "seen" not in line:
                self.probes[key] = max(1, int(line["probe"]))
            if "whole" in line or "ns" in line:
                self.waited[key] = float(line.get("whole", line).get("waited", 0.0))
        except (KeyError, TypeError, ValueError):
            return

    def _append(self, line: dict[str, Any]) -> None:
        if not self.path:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(handle, ("\n" if _torn(self.path) else "").encode() + json.dumps(line).encode() + b"\n")
            finally:
                os.close(handle)
        except OSError:
            self.path = None  # a cache that cannot be written only costs time


def _named(signature: OpSignature) -> dict[str, Any]:
    return {
        "signature": signature.key,
        "what": str(signature),
        "family": signature.family,
        "results": list(signature.results),
    }


def _covers(made: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether all outputs wanted are made."""
    return len(made) >= len(wanted) and all(not want or want == one for want, one in zip(wanted, made, strict=False))


def folder() -> Path:
    """The user's cache directory."""
    return kept("profiles")


def _torn(path: Path) -> bool:
    """Whether a kill cut the last line short."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for row in text.splitlines():
        try:
            line = json.loads(row)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line
