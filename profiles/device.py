"""The device that ops are timed on, and what is missing when it cannot be used.

Invariant: two Devices with the same `name`, `provider`, `driver`, `threads` and `versions` give the same timings.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CUDA_LIBRARIES = {  # what the wheel's CUDA provider links, and who brings it
    "libcuda.so.1": "the NVIDIA driver",
    "libcudart.so.13": "CUDA 13 (libcudart.so.13)",
    "libcublas.so.13": "CUDA 13 (libcublas.so.13)",
    "libcudnn.so.9": "cuDNN 9 (libcudnn.so.9)",
}
INSTALL = "install the NVIDIA driver (580 or later), then: pip install 'onnxruntime-gpu[cuda,cudnn]'"


class NoDevice(Exception):
    """The device asked for cannot be used; says what is missing."""


@dataclass(frozen=True, slots=True)
class Device:
    """`kind` is cpu or cuda; `driver` is empty for a CPU."""

    kind: str
    name: str
    provider: str
    driver: str
    threads: int
    versions: tuple[tuple[str, str], ...]

    @property
    def providers(self) -> list[str]:
        return list(dict.fromkeys([self.provider, "CPUExecutionProvider"]))

    @property
    def key(self) -> str:
        """A short name for a cache file."""
        return hashlib.sha256(repr(asdict(self)).encode()).hexdigest()[:16]

    def described(self) -> dict[str, Any]:
        held = asdict(self)
        held["versions"] = dict(self.versions)
        return held


def find(wanted: str, threads: int | None = None) -> Device:
    """The device for `auto`, `cpu` or `cuda`; raises NoDevice when CUDA is asked for and cannot be used."""
    import onnxruntime

    quiet()
    versions = (("numpy", _numpy_version()), ("onnxruntime", str(onnxruntime.__version__)))
    missing = missing_for_cuda() if wanted in ("auto", "cuda") else ["it was not asked for"]
    if wanted == "cuda" and missing:
        raise NoDevice(f"CUDA cannot be used here; missing: {'; '.join(missing)}. {INSTALL}")
    count = threads or len(os.sched_getaffinity(0))
    if missing:
        return Device("cpu", _cpu_name(), "CPUExecutionProvider", "", count, versions)
    name, driver = _cuda_name()
    return Device("cuda", name, "CUDAExecutionProvider", driver, count, versions)


def quiet() -> None:
    """Keep onnxruntime to itself: remat prints its own words only, and sends nothing anywhere."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    onnxruntime.disable_telemetry_events()


def missing_for_cuda() -> list[str]:
    """What the CUDA provider lacks here, in words; nothing when it can be used."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return ["a CUDA build of onnxruntime (the onnxruntime-gpu wheel)"]
    if _loads("libcuda.so.1"):
        onnxruntime.preload_dlls()  # finds libraries that pip installed
    missing = [what for library, what in CUDA_LIBRARIES.items() if not _loads(library)]
    if not missing and not _devices():
        missing = ["a CUDA device (the driver sees none)"]
    return missing


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _devices() -> int:
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int(0)
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def _cuda_name() -> tuple[str, str]:
    driver = ctypes.CDLL("libcuda.so.1")
    name, version = ctypes.create_string_buffer(128), ctypes.c_int(0)
    driver.cuDeviceGetName(name, 128, 0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    return name.value.decode(), f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


def _numpy_version() -> str:
    import numpy

    return numpy.__version__


def free_memory(device: Device) -> int:
    """Bytes that could be had on the device now."""
    if device.kind == "cuda":
        return _free_on_cuda()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**63 - 1
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else 2**63 - 1


def _free_on_cuda() -> int:
    runtime = ctypes.CDLL("libcudart.so.13")
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return free.value
