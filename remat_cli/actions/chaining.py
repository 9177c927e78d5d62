"""What `problem --chain` does, on values: the chain of stages that a subject comes to, as a file holds it."""

from __future__ import annotations

from remat_cli.errors import BadInput
from remat_cli.formats import chainfile
from remat_cli.planning.subjects.subject import Subject


def chain_text(subject: Subject) -> str:
    """The content of the chain file. Raises BadInput for what is no chain."""
    from solvers.methods.chains.staged import chain_of
    from solvers.reductions.views import reduced

    chain, held = chain_of(reduced(subject.problem).problem)
    if chain.length < 2:
        raise BadInput(f"{subject.path}: nowhere does a single value cross its forward pass, so it is no chain")
    return chainfile.dumps(chain, held)
