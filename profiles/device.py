"""The device that ops are timed on, and the reason when it cannot be used.

Invariant: two Devices with the same `name`, `provider`, `driver`, `threads` and `versions` give the same timings.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from profiles import cuda
from profiles.forking import mind_forks
from profiles.importing import whole
from profiles.system import processors


class NoDevice(Exception):
    """The requested device cannot be used; the message says what is missing."""


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
        """The providers for an InferenceSession: an op without a kernel on CUDA runs on the CPU."""
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
    onnxruntime = quiet_runtime()
    versions = (("numpy", _numpy_version()), ("onnxruntime", str(onnxruntime.__version__)))
    missing = cuda.missing() if wanted in ("auto", "cuda") else ["it was not asked for"]
    if wanted == "cuda" and missing:
        raise NoDevice(f"CUDA cannot be used here; missing: {'; '.join(missing)}. {cuda.INSTALL}")
    count = threads or processors()
    if missing:
        return Device("cpu", _cpu_name(), "CPUExecutionProvider", "", count, versions)
    driver = f"CUDA {cuda.shown(cuda.driver_version())}"
    return Device("cuda", cuda.device_name(), cuda.PROVIDER, driver, count, versions)


def quiet_runtime() -> Any:
    """onnxruntime, silent: remat prints its own words only, and sends nothing anywhere."""
    with whole():
        import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    onnxruntime.disable_telemetry_events()
    mind_forks()
    return onnxruntime


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
    """The free bytes on the device now."""
    if device.kind == "cuda":
        return cuda.memory()[0]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**63 - 1
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else 2**63 - 1
