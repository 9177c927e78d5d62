"""Sizes and times as people read them, by the name that all that is shown knows them by."""

from remat_cli.units import show_bytes, show_share, show_time

__all__ = ["show_bytes", "show_share", "show_time"]
