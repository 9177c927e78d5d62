"""What users are told besides figures: the kinds of notes, and the one place in which they become sentences."""
