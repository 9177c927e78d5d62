"""Well-known networks as forward ONNX models."""
