"""A program with one session on a model, which does as it is told: `python -m remat_cli.checking.child PARENT`.

Invariant: whatever happens to the model happens to this process alone. Before `make` all that a program holds without a
session is there, feeds included; who started it reads its memory from outside. Peaks of an arena are read from
onnxruntime's own profile, kernel by kernel.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from profiles import cuda
from profiles.cuda import PROVIDERS, NoCuda
from profiles.device import quiet_runtime
from profiles.running import failures
from profiles.system import highest_memory, let_go
from remat_cli.children import serve
from remat_cli.errors import RematError
from remat_cli.formats import arrays, placesfile
from remat_cli.formats.declared import declared
from remat_cli.model.sessions import KINDS, REMAT
from remat_cli.model.sessions import STOCK as STOCK_RUNTIME
from remat_cli.runtime.c_session import c_options, learned_places
from remat_cli.runtime.in_place import run_in_place
from remat_cli.runtime.session import options_of, planned, split_chunks, trace_to
from solvers.placement.placed import Placement

STRICT, STOCK = REMAT, STOCK_RUNTIME  # the ops of a file run as they stand, or with all options as they are
LEAN = "arena and pattern off"  # two of these options off
PLANNED, IN_C = "plan", "c"  # the session of a plan, and that of a program in C with its places
TRACED_SHARE = 0.5  # share of the time for timing both models that goes to tracing kernels


@dataclass(frozen=True, slots=True)
class UserProgram:
    """What is opened, in which kind of session of those above, and on which inputs, where whoever runs it gives none.

    `in_place`: outputs that are the next run's inputs of these names; `bound`: whether they are written over these
    inputs. `placement`: where the plan's allocator is to put what the session asks for. `trace`: the beginning of the
    name of a trace's file, of a session whose arena is counted to the byte.
    """

    model: Path
    session: str
    threads: int = 0  # of one op; 0: as many as there are cores
    feeds: Path | None = None
    provider: str = "cpu"
    level: str = "all"  # the optimization level of a stock session
    placement: Placement | None = None
    trace: str | None = None
    in_place: dict[str, str] = field(default_factory=dict)
    bound: bool = False


class Running:
    """`made`: the session. `results`: of the last run, held until the next begins, as a program does. Each method is
    one thing to be told; what it gives is the answer."""

    def __init__(self, program: UserProgram) -> None:
        self.program = program
        self.made: Any = None
        self.results: list[Any] = []
        self.watch: Any = None
        self.feeds = self._read()
        quiet_runtime()
        if program.session in (PLANNED, IN_C):  # what such a program has imported
            import_module("remat_cli.runtime.planned")
            import_module("remat_cli").session  # noqa: B018
        gc.collect()

    def _read(self) -> dict[str, Any]:
        assert self.program.feeds is not None
        return arrays.read(self.program.feeds)

    def make(self) -> None:
        self.made = _made(self.program, self.program.trace)

    def run(self) -> int:
        """The ns that it took."""
        self.results = []
        begun = perf_counter_ns()
        self.results = _run(self.made, self.feeds, self.program)
        return perf_counter_ns() - begun

    def keep(self, path: str) -> None:
        """Leave the results of the last run in a file."""
        arrays.write({f"output_{place}": result for place, result in enumerate(self.results)}, Path(path))

    def settle(self) -> None:
        let_go()

    def highest(self) -> int:
        """The most that this process held, where nobody can read that from outside."""
        return highest_memory()

    def watch_device(self) -> None:
        from remat_cli.checking.weight import MemoryWatch

        self.watch = MemoryWatch().__enter__()

    def grown_on_device(self) -> int:
        """By how much the device's memory had grown at most since `watch_device`."""
        self.watch.__exit__(None, None, None)
        return int(self.watch.most)

    def stray(self) -> int | None:
        """The allocations that were not as planned."""
        return self.made.missed_in_all.requests if hasattr(self.made, "missed") else None

    def kernels(self) -> list[tuple[str, str, int, int]]:
        """Those of all runs, by the trace, which ends."""
        return _read_kernels(_events(Path(self.made.end_profiling()), PROVIDERS[self.program.provider]))

    def places(self) -> dict[str, Any]:
        """Where values lay in a run that was looked at."""
        asked = self.program
        return asdict(learned_places(asked.model, self.feeds, {}, asked.session == IN_C, asked.threads)[0])

    def race(self, against: str, seconds: float, trace: str | None) -> dict[str, Any]:
        """Both models in turn, so that whatever else this machine does meets both."""
        from remat_cli.checking.racing import inside, race

        asked = self.program, replace(self.program, model=Path(against), placement=None, bound=False)
        feeds = self.feeds, self._read()

        def runs(sessions: Sequence[Any]) -> list[Callable[[], object]]:
            return [partial(_run, *one) for one in zip(sessions, feeds, asked, strict=True)]

        found = asdict(race(runs((self.made, _made(asked[1]))), self.program.provider, self.program.threads, seconds))
        if trace is not None:
            pair = [_made(one, f"{trace}.{number}") for number, one in enumerate(asked)]
            found["inside"] = inside(pair, runs(pair), TRACED_SHARE * seconds)
        return found


def _made(program: UserProgram, trace: str | None = None) -> Any:
    if program.session == PLANNED:
        return import_module("remat_cli").session(str(program.model))
    if program.session == IN_C:
        places, options = placesfile.read(placesfile.beside(program.model)), c_options(program.threads)
        planned_session = import_module("remat_cli.runtime.planned").PlannedSession
        return planned_session(str(program.model), places.placement, "cpu", options, places.weights)
    if program.placement:
        return planned(program.model, program.placement, program.provider, program.threads, trace=trace)
    options = trace_to(trace, options_of(KINDS.get(program.session, KINDS[STOCK]), program.level))
    options.log_severity_level = 4
    options.intra_op_num_threads = program.threads
    if program.session == LEAN:
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    if program.trace is not None:
        split_chunks(PROVIDERS[program.provider])
        options.add_session_config_entry("session.use_env_allocators", "1")
    return cuda.session(str(program.model), options, [PROVIDERS[program.provider]])


def _run(session: Any, feeds: dict[str, Any], program: UserProgram) -> list[Any]:
    """The results, which the feeds of the next run have in them as far as that is asked."""
    if not program.in_place:
        results: list[Any] = session.run(None, feeds)
        return results
    names = [output.name for output in session.get_outputs()]
    if program.bound:
        made = run_in_place(session, feeds, program.in_place)
    else:
        made = dict(zip(names, session.run(None, feeds), strict=True))
    feeds |= {old: made[name] for name, old in program.in_place.items()}
    return [made[name] for name in names]


def _events(trace: Path, provider: str) -> list[dict[str, Any]]:
    """The trace's events for each kernel of this provider; other providers have arenas of their own."""
    told = [event for event in json.loads(trace.read_text()) if event.get("cat") == "Node"]
    events = [{**event["args"], "name": event["name"].removesuffix("_kernel_time")} for event in told]
    return [args for args in events if "mem_in_use_peak" in args and args["provider"] == provider]


def _read_kernels(events: list[dict[str, Any]]) -> list[tuple[str, str, int, int]]:
    """The fields of a `Kernel` for each.

    At the end of a kernel the profile gives the bytes requested and the bytes in use, which are rounded up; in between,
    where a kernel works in memory of its own, only the highest number in use so far. What rounding adds is taken off.
    A CUDA arena forgets to take off what was requested for small chunks that it joins: more than is in use it is not.
    """
    found = []
    highest = 0
    for args in events:
        used = int(args["mem_bytes_in_use"])
        after = most = min(int(args["mem_bytes_requested_in_use"]), used)
        if int(args["mem_in_use_peak"]) > highest:
            highest = int(args["mem_in_use_peak"])
            most = max(after, highest - (used - after))
        found.append((args["name"], args["op_name"], after, most))
    return found


def answers(programs: list[Running], told: Any) -> Iterator[object]:
    """Told first what the program is, and then what it does."""
    expected: tuple[type[Exception], ...] = (*failures(), NoCuda, RematError, MemoryError)
    try:
        if not programs:
            programs.append(Running(declared(UserProgram, told)))
            yield {"said": None}
        else:
            what, *given = told
            yield {"said": getattr(programs[0], what)(*given)}
    except expected as error:
        yield {"failed": " ".join(str(error).split())}


if __name__ == "__main__":
    serve(sys.argv[1], partial(answers, []))
