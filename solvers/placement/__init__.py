"""Places of values in memory: the allocator on paper, and orders that fit it."""
