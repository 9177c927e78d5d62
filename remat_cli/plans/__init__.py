"""Plans that were found: recorded, the best kept, compared on a curve, and memory followed over time."""
