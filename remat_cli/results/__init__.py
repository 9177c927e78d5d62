"""What was found before, kept so that it need not be looked for again."""
