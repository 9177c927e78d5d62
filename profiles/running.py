"""Sessions for timing, all strict: they run a graph's nodes exactly as they stand in the file.

Invariant: every refusal or failure of onnxruntime becomes a CannotRun that says why, in one line.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from profiles import cuda
from profiles.device import Device
from profiles.signature import Operand, OpSignature
from profiles.strict import strict_options

NO_KERNEL = "onnxruntime has no kernel for it"


class CannotRun(Exception):
    """onnxruntime has no kernel for the op, or the kernel failed. `memory`: the device's memory was too small."""

    def __init__(self, reason: str, memory: bool = False) -> None:
        super().__init__(reason)
        self.memory = memory


class OutOfTime(CannotRun):
    """The time for all of it was up before this ran or ended."""


class Endless(CannotRun):
    """The run did not end within the expected time."""


def failures() -> tuple[type[Exception], ...]:
    """Every type of error by which onnxruntime refuses."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = (
        "Fail",
        "NotImplemented",
        "InvalidArgument",
        "RuntimeException",
        "InvalidGraph",
        "InvalidProtobuf",
        "EPFail",
    )
    return (*(getattr(state, name) for name in names if hasattr(state, name)), RuntimeError)


def refusal(error: Exception) -> CannotRun:
    """onnxruntime's message, cut to one line."""
    text = " ".join(str(error).split()).rpartition("Fatal error: ")[2]
    if "is not a registered function/op" in text or "NOT_IMPLEMENTED" in text:
        return CannotRun(NO_KERNEL)
    short_of_memory = any(word in text.lower() for word in ("allocate memory", "out of memory", "available memory of"))
    return CannotRun(text[:200], short_of_memory)


def session(
    content: bytes,
    device: Device,
    profile: Path | None = None,
    folder: Path | None = None,
    shared_arena: bool = False,
) -> Any:
    """A strict session on a model's bytes; with `profile`, it writes a trace whose name begins with that path.

    `shared_arena`: with the arena that was registered for the whole process.
    """
    options = strict_options()
    options.intra_op_num_threads = device.threads
    options.log_severity_level = 4
    if shared_arena:
        options.add_session_config_entry("session.use_env_allocators", "1")
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    try:
        return cuda.session(content, options, device.providers)
    except failures() as error:
        raise refusal(error) from error


def bind(running: Any, feeds: dict[str, Any], device: Device) -> Any:
    """Inputs placed on the device, outputs left there. Strings cannot be placed anywhere: then it is the feeds."""
    import onnxruntime

    if any(array.dtype.kind in "OU" for array in feeds.values()):
        return feeds
    binding = running.io_binding()
    for name, array in feeds.items():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array, device.kind, 0)
        binding.bind_ortvalue_input(name, value)
    for output in running.get_outputs():
        binding.bind_output(output.name, device.kind, 0)
    return binding


def run(running: Any, binding: Any) -> None:
    """Run once and wait until all kernels have finished."""
    try:
        if isinstance(binding, dict):
            running.run(None, binding)
            return
        running.run_with_iobinding(binding)
        binding.synchronize_outputs()
    except failures() as error:
        raise refusal(error) from error


def single(signature: OpSignature, arrays: Sequence[Any]) -> tuple[bytes, dict[str, Any]]:
    """A model of this op alone, and its feeds; operands that the graph holds as constants become initializers."""
    node = onnx.NodeProto(op_type=signature.op_type, domain=signature.domain, name="op")
    node.attribute.extend(onnx.AttributeProto.FromString(data) for data in signature.attributes)
    node.input.extend("" if tensor is None else f"i{place}" for place, tensor in enumerate(signature.inputs))
    node.output.extend("" if tensor is None else f"o{place}" for place, tensor in enumerate(signature.outputs))
    graph = onnx.GraphProto(name="single", node=[node])
    feeds: dict[str, Any] = {}
    for place, (tensor, array) in enumerate(zip(signature.inputs, arrays, strict=True)):
        if tensor is None:
            continue
        if tensor.constant:
            graph.initializer.append(onnx.numpy_helper.from_array(array, f"i{place}"))
        else:
            graph.input.append(_info(f"i{place}", tensor))
            feeds[f"i{place}"] = array
    made = ((f"o{place}", tensor.dtype) for place, tensor in enumerate(signature.outputs) if tensor)
    # data may decide their sizes
    graph.output.extend(helper.make_tensor_value_info(name, kind, None) for name, kind in made)
    domain = "" if signature.domain == "ai.onnx" else signature.domain
    versions = {"": 20, domain: signature.opset}
    imports = [helper.make_opsetid(name, version) for name, version in versions.items()]
    model = onnx.ModelProto(graph=graph, opset_import=imports)
    model.ir_version = max(8, helper.find_min_ir_version_for(imports[:1]))
    return model.SerializeToString(), feeds


def chain(count: int) -> tuple[bytes, dict[str, Any]]:
    """A model of so many ops in a row that do next to nothing, and its feeds."""
    small = Operand(onnx.TensorProto.FLOAT, (4,))
    nodes = [helper.make_node("Relu", [f"v{place}"], [f"v{place + 1}"]) for place in range(count)]
    graph = helper.make_graph(nodes, "chain", [_info("v0", small)], [_info(f"v{count}", small)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    return model.SerializeToString(), {"v0": np.ones(4, np.float32)}


def traced(content: bytes, feeds: dict[str, Any], device: Device, runs: int, folder: Path | None = None) -> list[Any]:
    """The events of onnxruntime's own profile over some runs of a model."""
    with tempfile.TemporaryDirectory(prefix="remat-") as scratch:
        running = session(content, device, Path(scratch) / "trace", folder)
        binding = bind(running, feeds, device)
        for _ in range(runs):
            run(running, binding)
        return events(running)


def events(running: Any) -> list[Any]:
    """The events in a session's trace; the session goes on without a trace."""
    found: list[Any] = json.loads(Path(running.end_profiling()).read_text())
    return found


def _info(name: str, tensor: Operand) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, tensor.dtype, tensor.shape)
