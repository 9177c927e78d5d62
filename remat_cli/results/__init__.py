"""Stores answers, so that a question that was asked before needs no new search."""
