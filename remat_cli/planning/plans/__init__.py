"""What is done with plans once they are found: record them, compare them on a curve, and follow memory over time."""
