"""Checkmate's program, made small enough to prove optima at thousands of nodes."""
