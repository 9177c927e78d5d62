"""What an op costs: measured by onnxruntime, or estimated from its FLOPs and bytes."""
