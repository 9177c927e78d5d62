"""What any method does to an order: measure it, walk it, evict from it, trim it."""
