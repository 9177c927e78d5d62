"""The files that remat reads and writes."""
