"""A model run step by step with its inputs on the device, as a program that trains would; what a step is seen to do.

Invariant: inputs have memory of their own, of their size and no more; a step's outputs are let go before the next.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from profiles import cuda
from profiles.cuda import PROVIDERS
from profiles.strict import strict_options
from remat_cli.checking.feeds import draw_feeds
from remat_cli.ingest import ingest
from remat_cli.runtime import session as sessions

LEAST_STEPS = 3
SUFFIX = "_kernel_time"


class OnDevice:
    """Copies of arrays in device memory, by the runtime's own library: no package is needed for it."""

    def __init__(self) -> None:
        cuda.ready(cuda.PROVIDER)
        self.library = ctypes.CDLL(cuda.RUNTIME)
        self.held: list[ctypes.c_void_p] = []

    def put(self, array: np.ndarray) -> int:
        address = ctypes.c_void_p()
        size = ctypes.c_size_t(max(1, array.nbytes))
        if self.library.cudaMalloc(ctypes.byref(address), size):
            raise MemoryError(f"the device has no {array.nbytes} bytes for an input")
        self.held.append(address)
        whole = np.ascontiguousarray(array)
        self.library.cudaMemcpy(address, ctypes.c_void_p(whole.ctypes.data), ctypes.c_size_t(array.nbytes), 1)
        return address.value or 0

    def close(self) -> None:
        while self.held:
            self.library.cudaFree(self.held.pop())


class Step:
    """One session of a model. `how`: planned, strict or default."""

    def __init__(
        self,
        model: Path,
        device: str,
        how: str = "strict",
        trace: Path | None = None,
        **told: str,
    ) -> None:
        self.device = device
        self.feeds = draw_feeds(ingest(model, {}), 0)
        self.session = made(model, device, how, trace, told)
        self.binding = self.session.io_binding()
        self.names = [output.name for output in self.session.get_outputs()]
        self.memory = OnDevice() if device == "cuda" else None
        for name, array in self.feeds.items():
            if self.memory is None:
                self.binding.bind_cpu_input(name, array)
            else:
                self.binding.bind_input(name, "cuda", 0, array.dtype, array.shape, self.memory.put(array))

    def run(self) -> None:
        self.binding.clear_binding_outputs()
        for name in self.names:
            self.binding.bind_output(name, self.device, 0)
        self.session.run_with_iobinding(self.binding)
        self.binding.synchronize_outputs()

    def results(self) -> list[np.ndarray]:
        found: list[np.ndarray] = self.binding.copy_outputs_to_cpu()
        return found

    def times(self, seconds: float) -> list[float]:
        """Seconds of each step, after two that warm up."""
        for _ in range(2):
            self.run()
        found: list[float] = []
        end = time.perf_counter() + seconds
        while len(found) < LEAST_STEPS or time.perf_counter() < end:
            begun = time.perf_counter()
            self.run()
            found.append(time.perf_counter() - begun)
        return found

    def close(self) -> None:
        self.binding.clear_binding_outputs()
        if self.memory:
            self.memory.close()


def made(model: Path, device: str, how: str, trace: Path | None, told: dict[str, str]) -> Any:
    provider: Any = (PROVIDERS[device], told) if told and device == "cuda" else PROVIDERS[device]
    if how == "planned":
        return sessions.planned(model, None, device)
    options = strict_options() if how == "strict" else _default_options()
    if trace:
        options.enable_profiling, options.profile_file_prefix = True, str(trace)
    return cuda.session(str(model), options, [provider])


def _default_options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return options


def step_time(model: Path, device: str, how: str, seconds: float) -> dict[str, Any]:
    step = Step(model, device, how)
    times = step.times(seconds)
    step.close()
    tenth = sorted(times)[len(times) // 10]
    return {"ms": round(1e3 * statistics.median(times), 4), "tenth": round(1e3 * tenth, 4), "steps": len(times)}


def kernels(model: Path, device: str, runs: int = 1, **told: str) -> tuple[list[dict[str, Any]], list[np.ndarray]]:
    """What the runtime's trace says of each kernel of the last strict run, in their order; and that run's results."""
    with tempfile.TemporaryDirectory(prefix="remat-") as folder:
        step = Step(model, device, "strict", trace=Path(folder) / "trace", **told)
        for _ in range(runs):
            step.run()
        results = step.results()
        events = json.loads(Path(step.session.end_profiling()).read_text())
        step.close()
    ran = [event for event in events if event.get("cat") == "Node" and event["name"].endswith(SUFFIX)]
    ran.sort(key=lambda event: int(event["ts"]))
    ran = ran[-len(ran) // runs :]
    return [{"name": event["name"].removesuffix(SUFFIX), "us": event["dur"], **event["args"]} for event in ran], results
