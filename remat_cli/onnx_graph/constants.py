"""What Constant nodes hold.

Invariant: content is read only of tensors that are small enough to be shapes, axes or lengths.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

FOLDED_ELEMENTS = 4096  # of a constant whose content is known: no shape, and no list of axes or lengths, has more


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a Constant node holds; None if that is sparse, or text."""
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
        if attribute.name in kinds:
            array = np.array(helper.get_attribute_value(attribute), kinds[attribute.name])
            return onnx.numpy_helper.from_array(array)
    return None
