"""The kinds of notes that users get besides figures, and the one place in which notes become sentences."""
