"""Ops in pieces: a graph whose widest values are never whole, in standard ONNX ops."""
