"""All that sessions of stock ONNX Runtime need, which optimizes the graph and places values as it likes.

Invariant: whoever plans, writes or runs models asks the target or the fields of its session (`model/sessions.py`), and
never which kind it is.
"""
