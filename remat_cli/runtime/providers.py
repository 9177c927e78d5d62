"""onnxruntime's names for each kind of device."""

from __future__ import annotations

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
