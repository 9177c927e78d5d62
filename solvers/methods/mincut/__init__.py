"""The fusion-aware minimum cut, and memory traffic as a cost."""
