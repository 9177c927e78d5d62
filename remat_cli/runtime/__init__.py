"""The sessions of ONNX Runtime that a plan is promised for."""
