"""Smaller or better-ordered problems, each with its way back."""
