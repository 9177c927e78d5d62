"""Orders, recomputation and bounds improved together: the default method."""
