"""The cost of an op: measured by onnxruntime, or estimated from its FLOPs and bytes."""
