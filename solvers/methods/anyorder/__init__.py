"""A bound over all orders: cuts in time that assume no order of first computes."""
