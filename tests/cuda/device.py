"""The device that has memory and does no arithmetic (`device.c`), for tests that run onnxruntime's CUDA provider.

Invariant: the provider is the wheel's own; only what is below it is ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIBRARIES = (
    "libcuda.so.1",
    "libcudart.so.13",
    "libcublas.so.13",
    "libcublasLt.so.13",
    "libcurand.so.10",
    "libcudnn.so.9",
)


def build(folder: Path) -> Path:
    """The libraries in a folder, each with all there is in it, under the versions that the provider asks for."""
    folder.mkdir(parents=True, exist_ok=True)
    compiled = folder / "device.o"
    subprocess.run(["cc", "-O1", "-fPIC", "-c", HERE / "device.c", "-o", compiled], check=True)
    for name in LIBRARIES:
        script = folder / f"{name}.map"
        script.write_text(f"{name} {{ global: *; }};\n")
        flags = ["-shared", f"-Wl,-soname,{name}", f"-Wl,--version-script,{script}"]
        subprocess.run(["cc", *flags, compiled, "-o", folder / name], check=True)
    return folder


def environment(libraries: Path, **more: str) -> dict[str, str]:
    """Of a process that has such a device. The loader reads it when a process begins: so tests run the command anew."""
    search = os.pathsep.join([str(libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return {**os.environ, "LD_LIBRARY_PATH": search, "PYTHONPATH": str(ROOT), **more}


def remat(given: dict[str, str], folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "remat_cli", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)
