"""What the costs of a graph make of it: time and workspace of each op, and from those its problem.

Invariant: what is the same for all choices of what is in place is found once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiles.costs import Costs
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import Named, problem_of


@dataclass(slots=True)
class Costed:
    """The costs of a graph, and what is found once for all that may be in place in it: what each op takes, and the
    problem with nothing in place."""

    costs: Costs | None
    table: dict[str, tuple[int, int]] | None = None
    apart: Named | None = None

    def problem(self, graph: Graph, other: bool) -> Named:
        """The problem of the graph with what is in place in it. `other`: of one that default sessions make."""
        if self.table is None:
            self.table = _table(graph, self.costs, other)
        named = problem_of(graph, self.table, self.costs.kind if self.costs else "cpu", self.apart)
        if self.apart is None and self.costs:
            named = replace(named, aside=named.aside + self.costs.session_bytes)
        self.apart = self.apart if graph.in_place else named
        return named


def _table(graph: Graph, costs: Costs | None, other: bool) -> dict[str, tuple[int, int]]:
    """Time and workspace of each op. `other`: of a graph that default sessions make of the model that was costed."""
    from profiles.roofline import FLOPS
    from profiles.survey import estimated
    from remat_cli.model.signatures import ops_of

    if costs and not other:
        return costs.table()
    known = {**costs.table(), **costs.table(by_default=True)} if costs else {}
    if all(op.name in known for op in graph.ops):
        return known
    paper = estimated(ops_of(graph), FLOPS if costs and costs.unit == FLOPS else "cpu")
    return {name: (cost.ns, cost.workspace) for name, cost in paper.items()} | known
