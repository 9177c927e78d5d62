"""Operations on orders that all methods share: measure an order, walk it, evict from it, trim it."""
