"""The command, and both ends of the pipeline: ONNX in, ONNX out."""
