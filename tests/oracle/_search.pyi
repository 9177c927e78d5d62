"""The oracle's search in C++, `search.cpp`."""

from tests.oracle.tables import Ints, Tables

def search(tables: Tables, budget: int, in_order: bool, by_peak: bool, /) -> tuple[int, Ints]: ...
