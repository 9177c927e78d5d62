"""The graph that onnxruntime makes of a model before it runs it: its nodes are the kernels that really run.

Invariant: nothing is run; the graph is that of a session of this level and provider on this machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import onnx

from profiles.cuda import PROVIDERS
from profiles.device import quiet_runtime
from profiles.running import failures, refusal
from remat_cli.runtime.session import level_named

SAYS = "remat.optimized"  # metadata key of a model that was written to a file after optimization
# optimizers that choose this machine's layouts of convolutions; every session chooses them anew
LAYOUTS = ("NchwcTransformer",)
LAID_OUT = "com.microsoft.nchwc"  # the domain of ops that run in them


@cache
def layout_block() -> int:
    """How many channels lie together in the layouts of convolutions that onnxruntime chooses on this processor; 0 where
    it chooses none. Weights in these layouts give other results where another number lies together."""
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [8, 16, 1, 1], [0.0] * 128)
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [1, size, 4, 4]) for name, size in (("x", 16), ("y", 8)))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Conv", ["x", "w"], ["y"])], "layouts", [x], [y], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    made = optimize(model.SerializeToString(), Path())
    return int(made.graph.initializer[0].dims[0]) if any(map(is_laid_out, made.graph.node)) else 0


def is_laid_out(node: onnx.NodeProto) -> bool:
    return bool(node.domain == LAID_OUT)


def optimize(
    content: bytes,
    tensors: Path,
    level: str = "all",
    provider: str = "cpu",
    without: Sequence[str] = (),
    folded: int | None = None,
) -> onnx.ModelProto:
    """The model after optimization; its external tensors lie in `tensors`. Raises CannotRun. `without`: optimizers to
    skip. `folded`: the most bytes of a value that is folded into a constant."""
    ort = quiet_runtime()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.enable_mem_reuse = False  # nothing is run: to plan buffers takes half of the time for thousands of nodes
    options.graph_optimization_level = level_named(level)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tensors))
    if folded is not None:
        options.add_session_config_entry("optimization.constant_folding_max_output_size_in_bytes", str(folded))
    with tempfile.TemporaryDirectory(prefix="remat-") as folder:
        written = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(written)
        try:
            made = ort.InferenceSession(content, options, [PROVIDERS[provider]], disabled_optimizers=list(without))
        except failures() as error:
            raise refusal(error) from error
        model = onnx.load(str(written), load_external_data=False)
    taken = {one.name for one in (*made.get_inputs(), *made.get_overridable_initializers(), *model.graph.initializer)}
    inputs = [given for given in model.graph.input if given.name in taken]
    if len(inputs) < len(model.graph.input):  # IR version 3 lists constants as inputs, merged ones too
        del model.graph.input[:]
        model.graph.input.extend(inputs)
    return model
