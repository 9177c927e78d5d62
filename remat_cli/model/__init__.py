"""An ONNX training graph as remat sees it: its graph, what each op does, its scheduling problem."""
