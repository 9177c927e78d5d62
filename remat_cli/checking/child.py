"""One model, one session, in a process of its own: `python -m remat_cli.checking.child PARENT`.

Invariant: whatever happens to the model happens to this process alone. Peaks are read from onnxruntime's own profile of
its arena, kernel by kernel.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from profiles import cuda
from profiles.cuda import PROVIDERS, NoCuda
from profiles.device import quiet_runtime
from profiles.running import failures
from profiles.system import let_go
from remat_cli.checking.weight import MemoryWatch, mapped_now, resident, resident_now, resident_peak
from remat_cli.children import serve
from remat_cli.formats import arrays
from remat_cli.formats.declared import declared
from remat_cli.model.sessions import KINDS, REMAT
from remat_cli.runtime.in_place import run_in_place
from remat_cli.runtime.session import options_of, planned, split_chunks, trace_to
from solvers.placement.largest import Placement

TRACED_SHARE = 0.5  # share of the time for timing both models that goes to tracing kernels


@dataclass(frozen=True, slots=True)
class Request:
    """`outputs`: where to leave the results of each run, if asked."""

    model: str
    feeds: str
    runtime: str = REMAT
    provider: str = "cpu"
    runs: int = 1
    outputs: str | None = None
    trace: str | None = None
    threads: int = 0  # 0: as many as there are cores
    watch: bool = False  # tell of each kernel
    level: str = "all"  # the optimization level of a default session
    against: str | None = None  # another model, to be timed in turn with this one
    seconds: float = 0.0  # the time for timing both models
    weigh: bool = False  # count what the process grows by, in a session as a user would make it
    in_place: dict[str, str] = field(default_factory=dict)  # outputs that are the next run's inputs of these names
    bound: bool = False  # whether these outputs are written over the inputs
    placement: Placement | None = None  # where the plan's allocator is to put what such a session asks for


@dataclass(frozen=True, slots=True)
class Kernel:
    """One that ran: what was requested of the arena `after` it, and the `most` there was in its course."""

    name: str
    op_type: str
    after: int
    most: int


@dataclass(frozen=True, slots=True)
class Reply:
    """`arena`: the most that the arena held during each run, as requested of it (None where there is no profile)."""

    refused: str | None = None  # why the session could not be made
    failed: str | None = None  # why a run broke off
    endless: bool = False  # the run had not ended when its time was up
    arena: tuple[int, ...] = ()
    grew: int | None = None  # the greatest growth of the process's memory in its runs
    loaded: int | None = None  # its growth by the session, before any run
    loading: int | None = None  # and the greatest while the session was made
    stray: int | None = None  # allocations that were not as planned
    kernels: tuple[Kernel, ...] = ()  # the kernels of the first run, if they were asked for
    times: tuple[int, int] | None = None  # ns of a run of this model and of the other, undisturbed
    waited: float = 0.0  # the share of the time that threads waited for a processor, where no run was undisturbed
    probe: int = 0  # ns of the op that is timed with every profile
    inside: tuple[dict[str, int], ...] = ()  # ns of each kernel of this model and of the other, by its op's name


def answers(told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield asdict(_carry_out(declared(Request, told)))


def _refused() -> tuple[type[Exception], ...]:
    return (*failures(), NoCuda)


def _carry_out(request: Request) -> Reply:
    if request.weigh and request.provider == "cuda":
        return _weigh_on_device(request)
    loaded = loading = None
    try:
        if request.weigh:
            session, loaded, loading = _weigh_loading(request)
        else:
            session = _session(request)
    except _refused() as error:
        return Reply(refused=str(error))
    try:
        if request.weigh:
            weighed = _race(session, request) if request.against else _weigh(session, request)
            return replace(weighed, loaded=loaded, loading=loading)
        feeds = arrays.read(Path(request.feeds))
        for number in range(request.runs):
            feeds = feeds if request.in_place else arrays.read(Path(request.feeds))
            _keep(_run(session, feeds, request), request, number)
    except _refused() as error:
        return Reply(failed=str(error))
    events = _kernels(Path(session.end_profiling()), PROVIDERS[request.provider]) if request.trace else []
    found = _read_kernels(events[: len(events) // request.runs])
    return Reply(arena=_peaks(events, request.runs) if request.trace else (), kernels=found if request.watch else ())


def _weigh_on_device(request: Request) -> Reply:
    """The device's memory beyond that before the session was made; weights and inputs are included."""
    feeds = arrays.read(Path(request.feeds))
    with MemoryWatch() as watch:
        try:
            session = _as_users_make_it(request)
            for _ in range(request.runs):
                results = _run(session, feeds, request)
        except _refused() as error:
            return Reply(failed=str(error))
    _keep(results, request)
    return Reply(grew=watch.most, stray=session.missed_in_all.requests if hasattr(session, "missed") else None)


def _weigh_loading(request: Request) -> tuple[Any, int, int]:
    """The session, and by how much the process grew with it and, at most, on the way there."""
    quiet_runtime()
    before, mapped = resident_now(), mapped_now()
    session = _as_users_make_it(request)
    let_go()
    return session, resident() - before - max(0, mapped_now() - mapped), resident_peak() - before


def _weigh(session: Any, request: Request) -> Reply:
    """The growth of the process's memory; the results of a run are held until the next begins.

    Weights in files of their own are mapped, and first read in a run. Who asks counts all weights already.
    """
    feeds = arrays.read(Path(request.feeds))
    before, mapped = resident_now(), mapped_now()
    results: list[Any] = []
    for _ in range(request.runs):
        results.clear()
        results = _run(session, feeds, request)
    grew = resident_peak() - before - max(0, mapped_now() - mapped)
    _keep(results, request)
    return Reply(grew=grew, stray=session.missed_in_all.requests if hasattr(session, "missed") else None)


def _race(session: Any, request: Request) -> Reply:
    """Both models in turn, so that whatever else this machine does meets both."""
    from remat_cli.checking.racing import inside, race

    against = replace(request, model=request.against or "", placement=None, bound=False)
    asked, feeds = (request, against), [arrays.read(Path(request.feeds)), arrays.read(Path(request.feeds))]

    def runs(sessions: Sequence[Any]) -> list[Callable[[], object]]:
        return [partial(_run, *one) for one in zip(sessions, feeds, asked, strict=True)]

    pair = [session, _as_users_make_it(against)]
    found = race(runs(pair), request.provider, request.threads, request.seconds)
    if not request.trace:
        return Reply(**asdict(found))
    pair = [_as_users_make_it(one, f"{request.trace}.{number}") for number, one in enumerate((request, against))]
    return Reply(**asdict(found), inside=inside(pair, runs(pair), TRACED_SHARE * request.seconds))


def _as_users_make_it(request: Request, trace: str | None = None) -> Any:
    """A session with the runtime's own allocator, or with the plan's where that has places.

    `trace`: the beginning of the name of a trace's file, if there is one.
    """
    if request.placement:
        return planned(request.model, request.placement, request.provider, request.threads, trace=trace)
    return _make_session(request, trace_to(trace, _options(request)))


def _session(request: Request) -> Any:
    options = _options(request)
    split_chunks(PROVIDERS[request.provider])
    options.add_session_config_entry("session.use_env_allocators", "1")
    return _make_session(request, trace_to(request.trace, options))


def _options(request: Request) -> Any:
    return options_of(KINDS[request.runtime], request.level)


def _make_session(request: Request, options: Any) -> Any:
    options.log_severity_level = 4
    options.intra_op_num_threads = request.threads
    return cuda.session(request.model, options, [PROVIDERS[request.provider]])


def _run(session: Any, feeds: dict[str, Any], request: Request) -> list[Any]:
    """The results, which the feeds of the next run have in them as far as that is asked."""
    names = [output.name for output in session.get_outputs()]
    results: list[Any]
    if request.bound:
        found = run_in_place(session, feeds, request.in_place)
        results = [found[name] for name in names]
    else:
        results = session.run(names, feeds)
    made = dict(zip(names, results, strict=True))
    feeds |= {old: made[name] for name, old in request.in_place.items()}
    return results


def _keep(results: list[Any], request: Request, number: int = 0) -> None:
    if request.outputs:
        named = {f"output_{place}": result for place, result in enumerate(results)}
        arrays.write(named, Path(f"{request.outputs}.{number}"))


def _kernels(trace: Path, provider: str) -> list[dict[str, Any]]:
    """The trace's events for each kernel of this provider; other providers have arenas of their own."""
    told = [event for event in json.loads(trace.read_text()) if event.get("cat") == "Node"]
    events = [{**event["args"], "name": event["name"].removesuffix("_kernel_time")} for event in told]
    return [args for args in events if "mem_in_use_peak" in args and args["provider"] == provider]


def _read_kernels(kernels: list[dict[str, Any]]) -> tuple[Kernel, ...]:
    """Each kernel of one run.

    At the end of a kernel the profile gives the bytes requested and the bytes in use, which are rounded up; in between,
    where a kernel works in memory of its own, only the highest number in use so far. What rounding adds is taken off.
    A CUDA arena forgets to take off what was requested for small chunks that it joins: more than is in use it is not.
    """
    found = []
    highest = 0
    for args in kernels:
        used = int(args["mem_bytes_in_use"])
        after = most = min(int(args["mem_bytes_requested_in_use"]), used)
        if int(args["mem_in_use_peak"]) > highest:
            highest = int(args["mem_in_use_peak"])
            most = max(after, highest - (used - after))
        found.append(Kernel(args["name"], args["op_name"], after, most))
    return tuple(found)


def _peaks(kernels: list[dict[str, Any]], runs: int) -> tuple[int, ...]:
    """The most that was requested of the arena at once, for each run."""
    told = _read_kernels(kernels)
    parts = [told[number * len(told) // runs : (number + 1) * len(told) // runs] for number in range(runs)]
    return tuple(max((kernel.most for kernel in part), default=0) for part in parts)


if __name__ == "__main__":
    serve(sys.argv[1], answers)
