"""Schedules for rematerialization: integers in, an order of computes out; never a file, a name or ONNX."""
