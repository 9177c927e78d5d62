"""A process of its own in which ops and graphs run: how long they take, and the memory that ops work in.

Invariant: whatever a kernel does happens to that process alone, and its memory goes with it. Its arena splits every
chunk it hands out: a session's own arena hands out chunks of up to twice what is asked for, and its peak cannot be
told from that waste.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

from profiles.device import Device, quiet_runtime
from profiles.kernels import scratch
from profiles.measure import Seen, Timing, measure, session_ns
from profiles.probe import Probe, probe
from profiles.running import CannotRun, Endless, OutOfTime
from profiles.server import server, without_script
from profiles.signature import ALIGNMENT, Operand, OpSignature, padded
from profiles.whole import SHARE, Times, Whole, WholeGraph, time_whole, trace_whole

UNSEEN = 2**63  # a peak that was not watched: higher than any
DIED = "the process that ran it died"
TIME_UP = "time was up"
PATIENCE = 60.0  # in seconds: no op takes so long by itself


class OpBench:
    """Runs ops one after another. `with` ends its process. `until`: when it is ended whatever it does, by
    `time.monotonic`.

    The arena's peak only ever grows, and an op whose own peak hides below it runs again in a fresh process: so ops are
    best asked for in the order of `expected_peak`.
    """

    def __init__(self, device: Device, until: float = math.inf) -> None:
        self.device = device
        self.until = until
        self.process: BaseProcess | None = None
        self.line: Connection | None = None
        self.highest = 0

    def __enter__(self) -> OpBench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def measure(self, signature: OpSignature, seconds: float) -> Timing:
        """The op's time, and the bytes held only while it runs. Raises CannotRun, also if the op kills the process."""
        try:
            timing, before, peak = self._ask(measure, signature, self.device, seconds)
        except CannotRun:
            self.highest = UNSEEN  # it may have held more than any before
            raise
        found = self._work(signature, before, peak)
        if found is None:
            self._stop()
            _, before, peak = self._ask(measure, signature, self.device, 0.0)
            found = self._work(signature, before, peak)
        return replace(timing, workspace=found or 0)

    def time(self, signature: OpSignature, seconds: float) -> Timing:
        """The op's time only. Raises CannotRun."""
        self.highest = UNSEEN
        seen: Seen = self._ask(measure, signature, self.device, seconds, False)
        return seen[0]

    def session_ns(self) -> int:
        """The time of one run of a session before its first op."""
        found: int = self._ask(session_ns, self.device)
        return found

    def probe(self) -> Probe:
        """The present time of the op that is timed with every profile."""
        found: Probe = self._ask(probe, self.device)
        return found

    def whole(self, graph: WholeGraph, seconds: float, earlier: Times, slack: float) -> Whole:
        """The figures of a whole graph, timed and then traced. Raises CannotRun.

        One that took the time of a whole series for each earlier run is not timed again.
        """
        known = earlier.runs and min(earlier.runs) > seconds * SHARE * 1e9
        times = earlier if known else earlier + self.whole_times(graph, seconds * SHARE, slack)
        if self.device.kind == "cuda":
            self._stop()  # the trace needs a process that waits for every launch
            self._start(blocking=True)
        asked = graph, self.device, seconds, min(times.runs)
        inside, elsewhere, waited = self._ask(trace_whole, *asked, slack=slack + 10 * seconds)
        return Whole(times.runs, inside, elsewhere, max(times.waited, waited))

    def whole_times(self, graph: WholeGraph, seconds: float, slack: float = 0.0) -> Times:
        """The times of a whole graph. Raises CannotRun; `slack`: as for `_ask`."""
        found: Times = self._ask(time_whole, graph, self.device, seconds, slack=slack + 10 * seconds)
        return found

    def _work(self, signature: OpSignature, before: int, peak: int) -> int | None:
        """The workspace of an op, or None where an earlier op's peak may hide it. Less than a chunk counts as
        nothing."""
        left = sum(_padded(tensor) for tensor in signature.made)
        found = max(0, peak - before - left) // ALIGNMENT * ALIGNMENT
        if self.device.kind == "cuda":  # there each session has an arena of its own
            return found
        hidden = found and peak <= self.highest
        self.highest = max(self.highest, peak + left)  # later runs still hold the results of the run before
        return None if hidden else found

    def _ask(self, function: Callable[..., Any], *arguments: Any, slack: float = 0.0) -> Any:
        """The result of the function in the child process. Raises CannotRun, OutOfTime where all time is up; `slack`:
        seconds that it may take beyond the usual."""
        patience, left = PATIENCE + slack, self.until - monotonic()
        if left <= 0:
            raise OutOfTime(TIME_UP)
        line = self.line or self._start()
        try:
            line.send((function, arguments))
            if not line.poll(min(patience, left)):
                self._stop(at_once=True)
                if left < patience:
                    raise OutOfTime(TIME_UP)
                raise Endless(f"it did not end within {patience:.0f} s")
            found = line.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self._stop()
            raise CannotRun(DIED) from error
        if isinstance(found, _Refused):
            raise CannotRun(found.reason, found.memory)
        return found

    def _start(self, blocking: bool = False) -> Connection:
        context = server()
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.device, blocking), daemon=True)
        with without_script():
            self.process.start()
        theirs.close()
        return self.line

    def _stop(self, at_once: bool = False) -> None:
        if self.line and self.process:
            self.line.close()
            self.process.join(0.0 if at_once else 1.0)
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
        self.line = self.process = None
        self.highest = 0


class _Refused:
    """A CannotRun that is sent through the pipe."""

    def __init__(self, error: CannotRun) -> None:
        self.reason = str(error)
        self.memory = error.memory


def expected_peak(signature: OpSignature) -> int:
    """The bytes that the arena should hold while the op runs."""
    return sum(_padded(tensor) for tensor in signature.made) + scratch(signature)


def _padded(tensor: Operand) -> int:
    return padded(tensor.bytes)


def _serve(line: Connection, device: Device, blocking: bool) -> None:
    """Answer requests until the other end closes; the other end handles interrupts.

    `blocking`: on CUDA the host waits for every kernel, so that a trace of the host's times shows the kernels'.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if blocking:
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # CUDA reads this when a process first uses it
    _split_chunks(device)
    while True:
        try:
            function, arguments = line.recv()
        except EOFError:
            return
        try:
            found = function(*arguments)
        except CannotRun as error:
            found = _Refused(error)
        try:
            line.send(found)
        except BrokenPipeError:
            return


def _split_chunks(device: Device) -> None:
    onnxruntime = quiet_runtime()
    if device.kind == "cpu":
        memory = onnxruntime.OrtMemoryInfo(
            "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
        )
        onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg({"max_dead_bytes_per_chunk": 1}))
