"""Rows of the table of what can be cut, by what ops do."""
