"""`shrink`: a model as it is, and every way of running it in less memory, each measured as its user would run it.

Invariant: no figure here is predicted. Memory and time are those of a process of its own, metered from outside; outputs
are compared with those of the model as it was given.
"""
