"""What plans say once they are found: recorded, side by side on a curve, and in memory over time."""
