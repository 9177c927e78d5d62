"""An ONNX training graph in remat's own form: its ops and values, the meaning of each op, its scheduling problem."""
