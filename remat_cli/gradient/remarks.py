"""Notes on parameters that look odd: an exporter's constants, weights that it merged.

Invariant: a file that records its parameters, and remat's own networks, get no such note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import onnx

from remat_cli.gradient.exported import first_of, signature_of
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.ties import alike

# names that exporters make for tensors without a name
OWN_NAME = re.compile(r"(val_\d+|onnx::.*|/.*|_?tensor_constant\d*|\d+)")
# PyTorch's own layers have these names for parameters
PLAIN = frozenset(("weight", "bias", "in_proj_weight", "in_proj_bias"))
MANY_READS = 3  # reads of one parameter


def remarks(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]], reads: Mapping[str, int], choice: Choice
) -> Iterator[str]:
    """A line for each kind of oddity. The parameters have these shapes, and so many ops read each."""
    wanted = choice.groups or [(name,) for name in choice.params]
    if missing := [names[0] for names in wanted if not any(name in shapes for name in names)]:
        yield f"not trained, since no op that leads to the loss reads them under that name: {first_of(missing)}"
    if model.producer_name == "remat" or choice.wrt or choice.params:
        return
    if signature_of(model) is not None and not choice.as_exported:
        return
    if single := [name for name, shape in shapes.items() if math.prod(shape) == 1]:
        yield f"of one element, perhaps constants: {first_of(single)}; --wrt or --params-from leaves them out"
    if unnamed := [name for name in shapes if OWN_NAME.fullmatch(name)]:
        yield f"named by an exporter, perhaps constants or folded weights: {first_of(unnamed)}"
    if own := [name for name in shapes if _may_be_buffer(model, name)]:
        yield (
            f"perhaps buffers, which PyTorch's tracing exporter writes as it does parameters: {first_of(own)}; "
            "--params-from leaves them out"
        )
    if often := [f"{name} ({reads[name]} times)" for name in shapes if reads[name] >= MANY_READS]:
        yield f"read often: {first_of(often)}; one weight in the module, or several that an exporter merged?"
    for names in alike(model.graph, set(shapes)):
        yield f"equal at the start: {first_of(names)}; if the module has them as one, --tie {names[0]}={names[1]}"


def _may_be_buffer(model: onnx.ModelProto, name: str) -> bool:
    """Whether the tensor may be a buffer: a traced export does not tell, so any name of the module's own that is no
    layer's weight or bias counts."""
    if model.producer_name != "pytorch" or signature_of(model) is not None or OWN_NAME.fullmatch(name):
        return False
    return name.rpartition(".")[2] not in PLAIN
