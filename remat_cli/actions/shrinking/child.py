"""A user's program with one session, which does as it is told: `python -m remat_cli.actions.shrinking.child PARENT`.

It measures no memory: who started it reads that from outside. Invariant: before `make` all that a program holds without
a session is there, feeds included.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import onnxruntime

from profiles.device import quiet_runtime
from profiles.running import failures
from remat_cli.children import serve
from remat_cli.errors import RematError
from remat_cli.formats import arrays, placesfile
from remat_cli.model.sessions import DEFAULT as STOCK_SESSION
from remat_cli.model.sessions import STRICT as STRICT_SESSION
from remat_cli.runtime.c_session import c_options, learned_places
from remat_cli.runtime.planned import PlannedSession
from remat_cli.runtime.session import SILENT_LEVEL, options_of

STOCK, LEAN = "stock", "arena and pattern off"  # a session with all options as they are, and with two off
PLANNED, IN_C = "plan", "c"  # the session of a plan, and that of a program in C with its places
STRICT = "strict"  # that in which the ops of a file run as they stand


class UserProgram:
    """`made`: the session. `results`: of the last run, held until the next begins, as a program does."""

    def __init__(self, model: str, session: str, feeds: str, threads: int) -> None:
        self.model, self.kind, self.threads = model, session, threads
        self.made: Any = None
        self.results: list[Any] = []
        self.feeds = arrays.read(Path(feeds))
        quiet_runtime()
        if session == PLANNED:
            import_module("remat_cli").session  # noqa: B018  what a program has imported

    def make(self) -> dict[str, Any]:
        if self.kind == PLANNED:
            self.made = import_module("remat_cli").session(self.model)
        elif self.kind == IN_C:
            places = placesfile.read(placesfile.beside(Path(self.model)))
            options = c_options(self.threads)
            self.made = PlannedSession(self.model, places.placement, "cpu", options, places.weights)
        else:
            self.made = onnxruntime.InferenceSession(self.model, self._options(), ["CPUExecutionProvider"])
        return {}

    def _options(self) -> Any:
        options = options_of(STRICT_SESSION if self.kind == STRICT else STOCK_SESSION)
        options.log_severity_level = SILENT_LEVEL
        options.intra_op_num_threads = self.threads
        if self.kind == LEAN:
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        return options

    def run(self) -> dict[str, Any]:
        self.results = []
        begun = perf_counter_ns()
        self.results = self.made.run(None, self.feeds)
        return {"ns": perf_counter_ns() - begun}

    def keep(self, path: str) -> dict[str, Any]:
        """Leave the results of the last run in a file."""
        arrays.write({f"output_{place}": result for place, result in enumerate(self.results)}, Path(path))
        return {}

    def places(self) -> dict[str, Any]:
        found, _ = learned_places(Path(self.model), self.feeds, {}, self.kind == IN_C, self.threads)
        return asdict(found)


def main(parent: str) -> None:
    expected: tuple[type[Exception], ...] = (*failures(), RematError, MemoryError)
    programs: list[UserProgram] = []

    def answers(told: Any) -> Iterator[dict[str, Any]]:
        """Told first what the program is, and then what it does."""
        if not programs:
            programs.append(UserProgram(**told))
            yield {}
            return
        what, *given = told
        try:
            yield getattr(programs[0], what)(*given)
        except expected as error:
            yield {"failed": " ".join(str(error).split())}

    serve(parent, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
