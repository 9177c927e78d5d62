"""Articulation points, against taking each op out and looking."""

from __future__ import annotations

from random import Random

import pytest

from solvers.methods.baselines.forward import articulation_points, forward_edges, forward_nodes
from solvers.problem import Problem
from tests.contract.graphs import GRAPHS, chain, random_step


def pieces(nodes: set[int], edges: list[tuple[int, int]]) -> int:
    count = 0
    while nodes:
        count += 1
        reached = [nodes.pop()]
        while reached:
            node = reached.pop()
            beside = {b if a == node else a for a, b in edges if node in (a, b)} & nodes
            nodes -= beside
            reached += beside
    return count


def by_removal(problem: Problem) -> list[int]:
    inside = forward_nodes(problem)
    edges = [(-1, inside[0]), *forward_edges(problem), (inside[-1], len(problem.nodes))]
    every = {-1, *inside, len(problem.nodes)}
    whole = pieces(set(every), edges)
    return [op for op in inside if pieces(every - {op}, [edge for edge in edges if op not in edge]) > whole]


@pytest.mark.parametrize("seed", range(60))
def test_points_are_those_whose_removal_parts_the_graph(seed: int) -> None:
    problem = random_step(seed, Random(seed).randint(1, 14))
    assert articulation_points(problem) == by_removal(problem)


def test_block_ends_of_a_residual_network_but_not_their_insides() -> None:
    assert articulation_points(GRAPHS["residual"]) == [0, 3, 4]


def test_all_ops_of_a_chain() -> None:
    assert articulation_points(chain(5)) == [0, 1, 2, 3, 4]
