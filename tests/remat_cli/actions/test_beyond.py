"""A process that holds more than is said is at fault, beyond what is stated as the runtime's own."""

from __future__ import annotations

import pytest

from remat_cli.actions.verifying import ALLOWED_BYTES, beyond
from remat_cli.checking import Process
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import DEFAULT, STRICT, Session

SAID, ITSELF = 400_000_000, 200_000_000


@pytest.mark.parametrize(
    "session, held, itself, faults",
    [
        (STRICT, SAID, ITSELF, []),
        (STRICT, SAID + 20_000_000, ITSELF + 30_000_000, []),
        (STRICT, SAID + 20_000_001, ITSELF, ["the process holds 420MB, 20MB more than the 400MB that is said"]),
        (STRICT, SAID // 2, ITSELF + 30_000_001, ["the session itself holds 230MB"]),
        (STRICT, None, None, []),
        (DEFAULT, SAID + 40_000_000, 2 * ITSELF, []),
        (DEFAULT, SAID + 41_000_000, ITSELF, ["where 40MB is allowed for the runtime"]),
    ],
)
def test_what_is_beyond_what_is_said(session: Session, held: int | None, itself: int | None, faults: list[str]) -> None:
    weighed = Process(before=None, after=held, loaded=(None, itself))
    found = list(beyond(weighed, session, Promise(strict=1, arena=SAID, itself=ITSELF)))
    assert len(found) == len(faults)
    assert all(words in fault for words, fault in zip(faults, found, strict=True))


def test_small_models_have_some_bytes_to_spare() -> None:
    promise = Promise(strict=1, arena=1000, itself=1000)
    assert not list(beyond(Process(None, 1000 + ALLOWED_BYTES, loaded=(None, 1000 + ALLOWED_BYTES)), STRICT, promise))
    assert len(list(beyond(Process(None, 1001 + ALLOWED_BYTES), STRICT, promise))) == 1
    assert not list(beyond(Process(None, 10**9), STRICT, Promise(strict=1)))  # of a plan that says nothing of it
