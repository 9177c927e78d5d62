"""What a file may ask of its reader, in one table: a file beyond any of these is bad input, whatever it is.

Invariant: every reader of something that others made holds itself to these before it does what they bound.
"""

from __future__ import annotations

MODEL_BYTES = 2**31 - 1  # of an ONNX file without its external data: the limit of its encoding
TEXT_BYTES = 2**28  # of a plan or a problem file
NESTING_LEVELS = 50  # of objects and lists within each other
FUNCTION_NODES = 1_000_000  # of a model whose functions are written out
TENSOR_BYTES = 2**50  # of one value
# A cost file: profiles/costs.py. Numbers of a problem: solvers/problem.py.
