"""ONNX graphs as they stand in files: read, walked and written out, whatever their ops mean."""
