"""Rotor on networks, held to its paper: the recurrence written out, and what a sequence needs by the paper's rules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from remat_cli.formats import chainfile, problemfile
from solvers.methods.chains.chain import Chain, ChainStep, StageOp, simulate
from solvers.methods.chains.rotor import rotor
from solvers.methods.chains.staged import chain_of
from solvers.problem import Limits, Problem
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import baseline, evaluate, schedule
from tests.ample import ample
from tests.remat_cli.steps import network

NEVER = float("inf")
NETWORKS = [("rotor-toy", {}), ("vgg16", {"batch": 8, "image": 64, "hidden": 32}), ("resnet18", {"image": 64})]
FINE = 4000  # slots


def least_makespan(chain: Chain, memory: float) -> float:
    """Theorem 1 as printed, memory in bytes: C(s, t, m), where a^{s-1} is not counted in m."""
    a, abar, delta, fw, bw = chain.a, chain.abar, chain.delta, chain.forward, chain.backward

    def all_fits(s: int, t: int, m: float) -> bool:
        needs = delta[t] + abar[s] + chain.o_f[s], delta[s] + delta[s - 1] + abar[s] + chain.o_b[s]
        return m >= max(needs)

    def walk_fits(s: int, t: int, m: float) -> bool:
        first = delta[t] + a[s] + chain.o_f[s]
        return m >= max([first, *(delta[t] + a[j - 1] + a[j] + chain.o_f[j] for j in range(s + 1, t))])

    @cache
    def least(s: int, t: int, m: float) -> float:
        if s == t:
            return fw[s] + bw[s] if all_fits(s, s, m) else NEVER
        found = [NEVER]
        if walk_fits(s, t, m):
            cuts = range(s + 1, t + 1)
            found += [sum(fw[s:c]) + least(c, t, m - a[c - 1]) + least(s, c - 1, m) for c in cuts]
        if all_fits(s, t, m):
            found.append(fw[s] + least(s + 1, t, m - abar[s]) + bw[s])
        return min(found)

    return least(1, chain.length, memory - a[0])


@pytest.mark.parametrize("name, settings", NETWORKS[:2])
def test_the_optimum_of_its_class(name: str, settings: dict[str, int], tmp_path: Path) -> None:
    """Slots may cost a hundredth of the memory. On the graph a plan can only be cheaper: less is held there."""
    problem = network(tmp_path, name, **settings).problem
    chain, held = chain_of(reduced(problem).problem)
    peak = baseline(problem)[1].peak
    compared = 0
    for share in (0.65, 0.7, 0.8, 0.9, 1.0):
        budget = int(share * peak)
        literal = least_makespan(chain, budget - held)
        sequence = rotor(chain, budget - held, FINE)
        if sequence is not None:
            compared += 1
            assert literal <= simulate(chain, sequence).makespan <= least_makespan(chain, 0.99 * (budget - held))
        if literal < NEVER:
            found = schedule(problem, budget, METHODS["rotor"].load(slots=FINE), Limits(ample()))
            assert found.outcome is not None
            assert found.outcome.peak <= budget
            assert found.outcome.cost <= 1.001 * literal
    assert compared


@pytest.mark.parametrize("name, settings", NETWORKS)
def test_a_sequence_needs_what_the_rules_say(name: str, settings: dict[str, int], tmp_path: Path) -> None:
    """As simulated on the problem of the network's chain, within a hundredth."""
    problem = network(tmp_path, name, **settings).problem
    chain, held = chain_of(reduced(problem).problem)
    chain = replace(chain, o_b=tuple(max(0, size) for size in chain.o_b))
    written = problemfile.loads(chainfile.dumps(chain, held)).problem
    sequence = rotor(chain, baseline(written)[1].peak - held, FINE)
    assert sequence is not None
    run = simulate(chain, sequence)
    cost, peak = costs_and_needs(written, chain.length, sequence)
    assert cost == run.makespan
    assert peak == pytest.approx(run.peak + held, rel=0.01)


def costs_and_needs(written: Problem, stages: int, sequence: tuple[ChainStep, ...]) -> tuple[int, int]:
    """Its computes: F1..Fn, the last loss's backward, Bn..B1."""
    order: list[int] = []
    for step in sequence:
        if step.op is not StageOp.BACK:
            order.append(step.stage - 1)
            continue
        order += [stages] if step.stage == stages else []
        order.append(2 * stages + 1 - step.stage)
    outcome = evaluate(written, order)[1]
    return outcome.cost, outcome.peak
