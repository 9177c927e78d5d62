"""The memory held on a CUDA device, by its driver's count: a witness independent of the runtime's arena.

Invariant: `most` is the highest of many samples of the memory held on the whole device, less that at the start; the
runtime's libraries were loaded before.
"""

from __future__ import annotations

import threading
from types import TracebackType

from onnx import TensorProto, helper

from profiles import cuda

LOOK_SECONDS = 0.001  # seconds between two looks


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

    one = [1, 1, 4, 4]
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Conv", ["y", "x"], ["z"])]
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "z"))
    model = helper.make_model(helper.make_graph(nodes, "libraries", [given], [made]), ir_version=8)
    model.opset_import[0].version = 20
    session = cuda.session(model.SerializeToString(), onnxruntime.SessionOptions(), [cuda.PROVIDER])
    session.run(None, {"x": np.ones(one, np.float32)})
