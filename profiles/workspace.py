"""The memory that an op works in besides its operands, to the byte that its arena rounds to.

Invariant: measured in a process of its own, whose arena splits every chunk it hands out. A session's own arena hands
out chunks of up to twice what is asked for, and its peak cannot be told from that waste.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from profiles.device import Device
from profiles.feeds import operands
from profiles.running import CannotRun, failures, refusal, single, traced
from profiles.signature import Signature

ALIGNMENT = 256  # the arena hands out multiples of this
DIED = "the process that measured its workspace died"


class Bench:
    """A process that runs ops, one after another, until one does not raise its arena's peak: then a fresh one does.

    The peak only ever grows, so ops are best asked for in the order of what they write.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.process: BaseProcess | None = None
        self.line: Connection | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def workspace(self, signature: Signature) -> int:
        """Bytes held only while the op runs. Raises CannotRun, also if that takes the process down."""
        found = self._ask(signature)
        if found is None:
            self._stop()
            found = self._ask(signature)
        if isinstance(found, str):
            raise CannotRun(found)
        return found or 0

    def _ask(self, signature: Signature) -> int | str | None:
        line = self.line or self._start()
        try:
            line.send(signature)
            found: int | str | None = line.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._stop()
            return DIED
        return found

    def _start(self) -> Connection:
        context = multiprocessing.get_context("forkserver")  # onnxruntime is imported once, and each child starts fresh
        context.set_forkserver_preload(["onnxruntime", "profiles.workspace"])
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.device), daemon=True)
        self.process.start()
        theirs.close()
        return self.line

    def _stop(self) -> None:
        if self.line and self.process:
            self.line.close()
            self.process.join(1.0)
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
        self.line = self.process = None


def _serve(line: Connection, device: Device) -> None:
    """Answer with bytes, with why not, or with None where an earlier op's peak hides this one's."""
    _split_chunks(device)
    highest = 0
    while True:
        try:
            signature: Signature = line.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            before, peak = _watch(signature, device)
        except CannotRun as error:
            line.send(str(error))
            continue
        left = sum(-(-tensor.bytes // ALIGNMENT) * ALIGNMENT for tensor in signature.made)
        found = max(0, peak - before - left)
        line.send(found if peak > highest or not found else None)
        highest = max(highest, peak)


def _split_chunks(device: Device) -> None:
    import onnxruntime

    from profiles.device import quiet

    quiet()
    if device.kind == "cpu":
        memory = onnxruntime.OrtMemoryInfo(
            "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
        )
        onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg({"max_dead_bytes_per_chunk": 1}))


def _watch(signature: Signature, device: Device) -> tuple[int, int]:
    """Bytes in the arena before the op, and at its peak."""
    try:
        content, feeds = single(signature, operands(signature))
        events = traced(content, feeds, device, runs=1, shared_arena=device.kind == "cpu")
    except MemoryError as error:
        raise CannotRun("the host has too little memory for its operands", memory=True) from error
    except failures() as error:
        raise refusal(error) from error
    nodes = [event["args"] for event in events if event.get("cat") == "Node" and "mem_in_use_peak" in event["args"]]
    if not nodes:
        return 0, 0
    before = int(nodes[0]["mem_bytes_in_use"]) - int(nodes[0]["mem_in_use_delta"])
    return before, max(int(node["mem_in_use_peak"]) for node in nodes)
