"""CUDA as onnxruntime needs it: what is missing, its libraries loaded, its provider's options, the memory it holds.

Invariant: a session that was asked for on CUDA runs there or is refused: the runtime by itself would quietly take the
CPU. It was run on an H100 (`examples/gpu/evidence.md`); tests run it on a device that has memory and does no arithmetic
(`tests/cuda/device.c`).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections.abc import Sequence
from functools import cache
from typing import Any

from profiles.forking import kept_in_children

PROVIDER = "CUDAExecutionProvider"
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": PROVIDER}  # by the kind of device
DRIVER, RUNTIME = "libcuda.so.1", "libcudart.so.13"
LIBRARIES = {  # the libraries that the wheel's CUDA provider needs, and the packages that bring them
    RUNTIME: "CUDA 13 (libcudart.so.13)",
    "libcublas.so.13": "CUDA 13 (libcublas.so.13)",
    "libcublasLt.so.13": "CUDA 13 (libcublasLt.so.13)",
    "libcurand.so.10": "CUDA 13 (libcurand.so.10)",
    "libcudnn.so.9": "cuDNN 9 (libcudnn.so.9)",
}
LEAST_DRIVER = 13_000  # in cuDriverGetVersion's form: 1000 * major + 10 * minor
INSTALL = "install the NVIDIA driver (580 or later), then: pip install 'onnxruntime-gpu[cuda,cudnn]'"
OPTIONS = {
    # the default times the algorithms: other choices give other bits in each session
    "cudnn_conv_algo_search": "HEURISTIC",
    "arena_extend_strategy": "kSameAsRequested",  # the default takes up to twice the bytes asked for
}

NO_FALLBACK = {"enable_fallback": 0}  # otherwise a kernel that fails on CUDA moves the whole session to the CPU


class NoCuda(RuntimeError):
    """A session was requested on CUDA, and onnxruntime would have made it on the CPU."""


def missing() -> list[str]:
    """The reasons why the CUDA provider cannot be used here, in words; empty when it can be."""
    import onnxruntime

    if PROVIDER not in onnxruntime.get_available_providers():
        return ["a CUDA build of onnxruntime (the onnxruntime-gpu wheel)"]
    if not loads(DRIVER):
        return ["the NVIDIA driver", *_absent()]
    if driver_version() < LEAST_DRIVER:
        return [f"an NVIDIA driver for CUDA {shown(LEAST_DRIVER)} (this one is for CUDA {shown(driver_version())})"]
    _preload()
    return _absent() or ([] if _devices() else ["a CUDA device (the driver sees none)"])


def ready(provider: str, options: Any = None) -> None:
    """Prepare the process and the session's options for a session with this provider."""
    if provider != PROVIDER:
        return
    _preload()
    if options is not None:
        options.use_deterministic_compute = True  # otherwise sums of rows are added up in any order


def session(model: str | bytes, options: Any, providers: Sequence[Any]) -> Any:
    """An InferenceSession on the first of these providers, with whatever others may take what it has no kernel for."""
    import onnxruntime

    main = providers[0] if isinstance(providers[0], str) else providers[0][0]
    ready(main, options)
    listed = [with_options(provider) for provider in providers]
    return made_there(onnxruntime.InferenceSession(model, options, providers=listed, **NO_FALLBACK), main)


def made_there(session: Any, provider: str) -> Any:
    """The session, if it runs on the requested provider."""
    kept_in_children(session)
    if provider == PROVIDER and PROVIDER not in session.get_providers():
        lacking = "; ".join(missing()) or "nothing that could be seen"
        raise NoCuda(f"onnxruntime could not make a session on CUDA; what is missing: {lacking}")
    return session


def with_options(provider: Any, **more: str) -> Any:
    """A provider, a name or a pair, with more options; options in a pair stay."""
    name, given = (provider, {}) if isinstance(provider, str) else provider
    return (name, {**OPTIONS, **given, **more}) if name == PROVIDER else provider


@cache
def _preload() -> None:
    """Load the libraries that pip installed. onnxruntime prints what it does not find; `missing` says that instead."""
    import onnxruntime

    with contextlib.redirect_stdout(io.StringIO()):
        onnxruntime.preload_dlls()


def _absent() -> list[str]:
    return [what for library, what in LIBRARIES.items() if not loads(library)]


def loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _devices() -> int:
    driver, count = ctypes.CDLL(DRIVER), ctypes.c_int(0)
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def device_name() -> str:
    driver, name = ctypes.CDLL(DRIVER), ctypes.create_string_buffer(128)
    driver.cuInit(0)
    driver.cuDeviceGetName(name, 128, 0)
    return name.value.decode()


def driver_version() -> int:
    version = ctypes.c_int(0)
    ctypes.CDLL(DRIVER).cuDriverGetVersion(ctypes.byref(version))
    return version.value


def shown(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


@cache
def session_bytes() -> int:
    """The device memory that a session takes beside its tensors: its libraries' handles have memory to work in.

    It is that of a second session: what is loaded once and for all is no session's.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    first = session(_small_model(), options, [PROVIDER])
    before, _ = memory()
    second = session(_small_model(), options, [PROVIDER])
    after, _ = memory()
    del first, second
    return max(0, before - after)


def _small_model() -> bytes:
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["y"])], "small", ends[:1], ends[1:])
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8).SerializeToString()
    )


def memory() -> tuple[int, int]:
    """The bytes that are free on the device, and its total bytes, by the driver's count."""
    ready(PROVIDER)
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    failed = ctypes.CDLL(RUNTIME).cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    if failed:
        raise NoCuda(f"the driver does not say what is free on the device (error {failed} of cudaMemGetInfo)")
    return free.value, total.value
