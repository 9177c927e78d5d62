"""The Python API: what a program says, turned into what the actions take. `remat_cli` itself brings it, lazily.

Invariant: the same questions, errors and answers as the command's; nothing is printed, and nothing written but what is
given a name. What has no meaning is a Usage in words, whatever its type.
"""

from solvers.late import mind_late_threads

mind_late_threads()  # a program may have daemon threads
