"""Declares the ops of torchvision that a build of it without its compiled part lacks: importing it needs their names.

Invariant: nothing here uses them.
"""

from __future__ import annotations

import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:  # it asks for an op that is not there; now it is, as long as this is
    OPS = torch.library.Library("torchvision", "DEF")
    for op in ("nms", "qnms"):
        OPS.define(f"{op}(Tensor dets, Tensor scores, float threshold) -> Tensor")
