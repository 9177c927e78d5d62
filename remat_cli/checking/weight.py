"""The memory of a process, by the kernel's count, and of a CUDA device, by its driver's: witnesses independent of the
runtime's arena.

Invariant: `resident_peak` is the peak since `resident_now` was last called, where the kernel can reset it. A
`MemoryWatch` has the highest of many samples of the whole device, less that at the start; the runtime's libraries were
loaded before.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from profiles import cuda
from profiles.system import highest_memory, told_of

COUNTED = Path("/proc/self/clear_refs").exists()  # else all that is known is the most that this process ever held
LOOK_SECONDS = 0.001  # seconds between two looks


def resident_now(process: int | str = "self") -> int:
    """The resident bytes now; the peak so far is reset."""
    if COUNTED:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    return resident(process)


def resident(process: int | str = "self") -> int:
    """The resident bytes now; the peak stays."""
    return told_of(process, "VmRSS") if COUNTED else highest_memory()


def resident_peak(process: int | str = "self") -> int:
    return told_of(process, "VmHWM") if COUNTED else highest_memory()


def mapped_now(process: int | str = "self") -> int:
    """Resident bytes of mapped files of data, such as the weights that a session maps. Files that code is mapped from
    do not count: what a run brings in of them is what the process takes for it."""
    held: dict[str, int] = {}
    code: set[str] = set()
    name = ""
    lines = Path(f"/proc/{process}/smaps").read_text().splitlines() if COUNTED else []
    for fields in (line.split(maxsplit=5) for line in lines):
        if not fields[0].endswith(":"):  # addresses, access, offset, device, number, and a path where there is one
            name = fields[5] if len(fields) > 5 and fields[5].startswith("/") else ""
            if "x" in fields[1]:
                code.add(name)
        elif fields[0] == "Rss:" and name:
            held[name] = held.get(name, 0) + 1024 * int(fields[1])
    return sum(held[name] for name in held.keys() - code)


class MemoryWatch:
    """Samples while `with` lasts, in a thread of its own: the runtime releases Python's lock while it runs."""

    def __enter__(self) -> MemoryWatch:
        _load_libraries()
        self.first = _bytes_held()
        self.most = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        self.thread.join()
        self.most = max(self.most, _bytes_held() - self.first)

    def restart(self) -> int:
        """The highest sample so far; the count starts anew."""
        most, self.most = self.most, 0
        return most

    def _look(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            self.most = max(self.most, _bytes_held() - self.first)


def _bytes_held() -> int:
    free, total = cuda.memory()
    return total - free


def _load_libraries() -> None:
    """Run a product and a convolution once, because the memory of CUDA's libraries is no model's."""
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper

    one = [1, 1, 4, 4]
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Conv", ["y", "x"], ["z"])]
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "z"))
    model = helper.make_model(helper.make_graph(nodes, "libraries", [given], [made]), ir_version=8)
    model.opset_import[0].version = 20
    session = cuda.session(model.SerializeToString(), onnxruntime.SessionOptions(), [cuda.PROVIDER])
    session.run(None, {"x": np.ones(one, np.float32)})
