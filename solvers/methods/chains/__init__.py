"""Dynamic programs for chains, and the way from a graph to a chain."""
