"""Questions and their answers: what was asked before is answered from the store.

Give `remat_cli.actions.solving.ask` a `Memory` and it looks there first and keeps there what it finds; the answer's
`cached` says which it was.

Invariant: a key is made of all that goes into an answer but the time it may take; an answer that had less time than is
given now stands in only if it was proved. What was interrupted is not kept, nor what would not come back as the very
same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remat_cli.formats.problemfile import dumps
from remat_cli.model.sessions import Session
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.results.answers import as_entry, comes_back, covers, from_entry
from remat_cli.results.store import Damaged, Store, folder, key_of
from remat_cli.results.versions import versions
from solvers.clock import FOREVER_SECONDS
from solvers.problem import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`seconds`: the user's time limit, of which the search itself may get a little less. `force`: search even where an
    answer is stored, and store the new one instead."""

    store: Store
    seconds: float
    force: bool = False
    worth: Callable[[Answer], bool] = lambda _: True  # whether an answer is worth keeping

    def key(self, question: Mapping[str, Any], subject: Subject) -> str:
        """The name of the answer to a question about the subject."""
        return key_of({"question": question, "subject": _describe(subject), "versions": versions()})

    def recalled(self, key: str, subject: Subject, session: Session, limits: Limits) -> Answer | None:
        """The answer that is stored by that name, if it stands in."""
        entry = None if self.force else self.store.get(key)
        try:
            if entry is None or not covers(entry, self.seconds):
                return None
            return from_entry(entry, subject, session, limits)
        except Damaged as error:
            self.store.complain(f"the kept result {key} is passed over: {error}")
            return None

    def keep(self, key: str, found: Answer, method: str, subject: Subject, session: Session, limits: Limits) -> None:
        """Keep the answer that a search has found by that name, if it is worth that."""
        if limits.clock.stopped() or not self.worth(found) or found.subject.graph_planned != subject.graph_planned:
            return
        seconds = FOREVER_SECONDS if limits.clock.worn() and limits.clock.left() else self.seconds
        entry = as_entry(found, subject, seconds)
        if comes_back(found, entry, subject, session):
            self.store.keep(key, _about(method, subject, session, found, seconds), entry)

    def figure(self, name: str, subject: Subject, limits: Limits, find: Callable[[], int | None]) -> int | None:
        """A figure of the subject that takes time to find: the stored one, if as much time was given for it, or what
        `find` finds now."""
        work, own = limits.clock.most, versions()
        key = key_of({"figure": name, "subject": _describe(subject), "work": work, "versions": own})
        entry = None if self.force else self.store.get(key)
        if entry is not None and entry.get("limit", 0) >= self.seconds:
            figure: int | None = entry.get("figure")
            return figure
        found = find()
        if not limits.clock.stopped():
            about = {"model": subject.path.name, "method": name, "limit": self.seconds, "versions": own}
            self.store.keep(key, about, {"figure": found, "limit": self.seconds})
        return found


def user_memory(seconds: float, force: bool = False, say: Callable[[str], None] = lambda _: None) -> Memory:
    """What is kept in the user's folder, if anything is; `say` hears what is wrong with it."""
    return Memory(store=Store(folder(), say), seconds=seconds, force=force)


def _describe(subject: Subject) -> dict[str, Any]:
    """The parts of a subject that an answer depends on: its model's content, and its costs."""
    return {
        "model": subject.source.sha256,
        "problem": hashlib.sha256(dumps(subject.named).encode()).hexdigest(),
        "dims": dict(subject.dims),
        "launch": subject.launch,
        "threads": subject.threads,
        "measured": subject.measured,
    }


def _about(method: str, subject: Subject, session: Session, found: Answer, seconds: float) -> dict[str, Any]:
    """For people: the question, and how the search ended."""
    return {
        "model": subject.path.name,
        "budget": found.budget,
        "method": method,
        "session": session.name,
        "limit": seconds,
        "status": found.status.value,
        "overhead": found.overhead if found.found else None,
        "versions": versions(),
    }
