"""The table of gradient rules: for each op, a function from its step and its outputs' gradients to its inputs'.

Invariant: a rule returns one gradient per input, in order (None where there is none, the rest left out), and may leave
it broadcast to the output's shape. What a rule cannot do exactly, it refuses.
"""

from __future__ import annotations

from remat_cli.gradient import losses
from remat_cli.gradient.differentiate import Rule
from remat_cli.gradient.rules import (
    convolution,
    indexing,
    normalization,
    pointwise,
    pooling,
    products,
    reduction,
    resize,
    shape,
)

RULES: dict[str, Rule] = {
    **pointwise.RULES,
    **products.RULES,
    **convolution.RULES,
    **pooling.RULES,
    **normalization.RULES,
    **reduction.RULES,
    **shape.RULES,
    **indexing.RULES,
    **resize.RULES,
    **losses.RULES,
}
