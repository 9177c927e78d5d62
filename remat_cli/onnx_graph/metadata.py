"""What the parts of a model say of themselves, key by key.

Invariant: of a key that is said twice the last word holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper


def said_in(part: onnx.ModelProto | onnx.GraphProto | onnx.NodeProto | onnx.ValueInfoProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in part.metadata_props}


def say(model: onnx.ModelProto, own: Mapping[str, str]) -> None:
    """Say this after all else; what the model said under the same keys goes."""
    kept = {key: value for key, value in said_in(model).items() if key not in own}
    helper.set_model_props(model, {**kept, **own})
