"""Pictures, by matplotlib, which is an extra: memory over time, what fills it, Checkmate's R and S."""
