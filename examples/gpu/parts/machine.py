"""The machine: what is installed, which device, and what CUDA's libraries take before any model is there."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from examples.gpu.parts.models import Bench
from profiles import cuda, device
from remat_cli.runtime.placed import library

PACKAGES = (
    "onnxruntime-gpu",
    "onnx",
    "numpy",
    "pyscipopt",
    "torch",
    "transformers",
    "torchvision",
    "nvidia-cudnn-cu13",
)


def machine(bench: Bench) -> Iterator[dict[str, Any]]:
    yield {"python": platform.python_version(), "kernel": platform.release(), "cores": len(os.sched_getaffinity(0))}
    yield {"packages": {name: installed(name) for name in PACKAGES}}
    yield {"planned_allocator": str(library() and library().name)}
    found = device.find(bench.device)
    yield {"device": found.described()}
    if bench.device == "cuda":
        free, total = cuda.memory()
        yield {"memory": {"total": total, "free_with_a_context": free}}
        from remat_cli.checking.weight import MemoryWatch

        with MemoryWatch():
            yield {"memory_libraries": {"taken_by_cublas_and_cudnn": free - cuda.memory()[0]}}


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
