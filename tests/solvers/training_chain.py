"""Chains of layers whose backward reads what their forward wrote."""

from __future__ import annotations

from random import Random

from solvers.problem import Node, Problem

LAYERS = 24


def training_chain(random: Random) -> Problem:
    forward = [Node(random.randint(1, 9), (step - 1,) if step else (), (step,)) for step in range(LAYERS)]
    backward = [
        Node(random.randint(1, 9), (LAYERS - 1 + step, LAYERS - 1 - step), (LAYERS + step,)) for step in range(LAYERS)
    ]
    return Problem((*forward, *backward), tuple(random.randint(2, 5) for _ in range(2 * LAYERS)), (2 * LAYERS - 1,))
