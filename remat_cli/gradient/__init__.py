"""Reverse-mode differentiation of ONNX graphs, in standard ops."""
