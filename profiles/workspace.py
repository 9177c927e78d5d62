"""The memory that an op works in besides its operands, to the byte that its arena rounds to.

Invariant: measured in a process of its own, whose arena splits every chunk it hands out. A session's own arena hands
out chunks of up to twice what is asked for, and its peak cannot be told from that waste.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from profiles.device import Device
from profiles.feeds import operands
from profiles.running import CannotRun, failures, single, traced
from profiles.signature import Signature

ALIGNMENT = 256  # the arena hands out multiples of this


def workspace(signature: Signature, device: Device) -> int:
    """Bytes held only while the op runs. Raises CannotRun if that takes the process down."""
    context = multiprocessing.get_context("forkserver")  # onnxruntime is imported once, and each child starts fresh
    context.set_forkserver_preload(["onnxruntime", "profiles.workspace"])
    try:
        with ProcessPoolExecutor(1, context) as pool:
            return pool.submit(_measure, signature, device).result()
    except BrokenProcessPool as error:
        raise CannotRun("the process that measured its workspace died") from error


def _measure(signature: Signature, device: Device) -> int:
    import onnxruntime

    if device.kind == "cpu":
        memory = onnxruntime.OrtMemoryInfo(
            "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
        )
        onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg({"max_dead_bytes_per_chunk": 1}))
    content, feeds = single(signature, operands(signature))
    try:
        events = traced(content, feeds, device, runs=1, shared_arena=device.kind == "cpu")
    except failures() as error:
        raise CannotRun(" ".join(str(error).split())[:200]) from None
    nodes = [event["args"] for event in events if event.get("cat") == "Node" and "mem_in_use_peak" in event["args"]]
    if not nodes:
        return 0
    before = int(nodes[0]["mem_bytes_in_use"]) - int(nodes[0]["mem_in_use_delta"])
    peak = max(int(node["mem_in_use_peak"]) for node in nodes)
    left = sum(-(-tensor.bytes // ALIGNMENT) * ALIGNMENT for tensor in signature.made)
    return max(0, peak - before - left)
