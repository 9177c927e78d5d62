"""Running the command as a user would, without paying for a process each time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from remat_cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        return json.loads(self.out)


class Command:
    """`remat ARGS`, in the working directory of the test."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.monkeypatch = monkeypatch
        monkeypatch.setattr(
            "remat_cli.actions.interrupts.LEAST_GRACE_SECONDS", 1e6
        )  # it would end the tests' own process

    def __call__(self, *args: object) -> Ran:
        self.monkeypatch.setattr("sys.argv", ["remat", *map(str, args)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        streams = self.capsys.readouterr()
        return Ran(stop.value.code if isinstance(stop.value.code, int) else 0, streams.out, streams.err)
