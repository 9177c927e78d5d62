"""What a user would have done without an optimizer, and the papers' comparisons."""
