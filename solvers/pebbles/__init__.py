"""The least peak of all orders: which copies must be in memory together, played backwards as a pebble game."""
