"""A training step as it runs: which graphs wait while which run, and the memory of all of them together.

In the first step every op is metered. Where several graphs together held more than the budget, each gets a room
(`sharing.py`) and torch.compile begins anew, and once more where the plans that came of it held more as well. A step
that begins with more gradients of earlier batches than any before it is observed as the first was, and so is the one
after a step of more runs, as where a pipeline has microbatches on their way. A graph that is compiled after that is
planned beside what still lives of it.

Invariant: it only observes, and never changes what a graph computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import Allowance
from remat_cli.torch.eager import StepMeter, before_backward
from remat_cli.torch.lowering import Lowered
from remat_cli.torch.metering import Meter
from remat_cli.torch.partition import PlannedJoint
from remat_cli.torch.pending import Run
from remat_cli.torch.private import FakeTensor, at_the_end_of_backward, disable
from remat_cli.torch.reading import plain_tensors_of
from remat_cli.torch.sharing import ForwardRun, GraphRoom, Need, divide, held_by_order, need_of, unforeseen, whole_peak
from remat_cli.torch.wrapped import around, held_by, named, under_way
from remat_cli.units import show_bytes

NOTHING = Need()  # for a graph without a plan
DIVISIONS = 2  # of one budget
FEW = 4096  # bytes beside the graphs that are not worth a word


@dataclass(slots=True, eq=False)
class WholeStep:
    """The graphs that one backend compiled, and the runs of the first step. `always`: meter every step."""

    allowance: Allowance
    again: Callable[[], None]  # makes torch.compile begin anew
    meter: StepMeter = field(default_factory=StepMeter)
    always: bool = False
    settled: bool = False  # whether a whole step has run
    needs: list[Need] = field(default_factory=list)
    # graph -> the number of its ops, and its room
    rooms: dict[int, tuple[int, GraphRoom]] = field(default_factory=dict)
    divided: tuple[int, int] = (0, 0)  # the budget that was divided into them, and how many runs the step had
    divisions: int = 0  # how often it was
    beside: int = 0  # the most that plans of it did not foresee
    least: bool = False  # whether no rooms can be smaller
    calls: list[ForwardRun] = field(default_factory=list)
    waiting: list[Run] = field(default_factory=list)
    passed: int = 0  # runs of this step whose backward passes have begun
    most: int = 0  # the most runs of a step that was observed
    longer: bool = False  # whether a step had more since then
    # messages about single graphs, which are dropped if the graphs together fit
    over: list[str] = field(default_factory=list)
    given: Meter = field(default_factory=Meter)  # tensors that no graph made
    left: Meter = field(default_factory=Meter)  # what backward passes returned
    around: list[Any] = field(default_factory=list)  # what divides the weights among ranks
    allowed: int | None = None  # bytes that the newest graph may hold, if its plan keeps to them
    earlier: Meter = field(default_factory=Meter)  # gradients that were there when its forward passes began
    grown: bool = False  # whether these, or the runs of a step, are more than in any step before
    foretold: int = 0  # the largest peak of a graph's plan
    outside: str = ""  # what was said of eager
    apart: int = 0  # what modules of earlier steps hold beside the newest graph

    def add_graph(self, given: Sequence[Any]) -> int:
        """The number of a graph that is about to be compiled with these tensors."""
        self.needs.append(NOTHING)
        self.apart = self._held_apart(given) if self.settled else 0
        return len(self.needs) - 1

    def _held_apart(self, given: Sequence[Any]) -> int:
        """The bytes that live of a step that is over, beside what a later graph is given and the gradients of that."""
        tensors = [x for x in given if isinstance(x, torch.Tensor)]
        if any(isinstance(x, FakeTensor) for x in tensors):  # they stand for weights, which may be those of that step
            return 0
        gradients = [x.grad for x in tensors if x.is_leaf and x.grad is not None]
        return self.meter.count() - self.meter.part([tensors, gradients])

    def room(self, graph: int, lowered: Lowered) -> GraphRoom:
        """The bytes that a graph may hold: its room if it is known, otherwise the whole allowance."""
        self.needs[graph] = need = need_of(lowered)
        ops, room = self.rooms.get(graph, (0, None))
        return room if room is not None and ops == need.ops else self.allowance.room(lowered, self.apart)

    def hear(self, graph: int, planned: PlannedJoint) -> None:
        """Record a graph's plan. The message of one that needs more than its room waits for the end of the step."""
        self.allowed = planned.found.budget if planned.found is not None and planned.found.fits else None
        self.foretold = max(self.foretold, planned.found.outcome.peak if planned.found is not None else 0)
        if planned.found is not None and planned.lowered is not None:
            need, ran = self.needs[graph], held_by_order(planned.lowered, planned.found.order)
            self.needs[graph] = replace(need, ran=ran, least=max(need.least, ran[0]) if planned.over else need.least)
        if not planned.over:
            return
        if self.settled:
            warnings.warn(planned.over, RematWarning, stacklevel=2)
        else:
            self.over.append(planned.over)

    def metered(self) -> bool:
        return self.always or not self.settled

    def begin_forward(self, graph: int, arguments: list[Any]) -> None:
        """The graph's forward pass begins; its backward pass is to come."""
        self.waiting = [run for run in self.waiting if not run.over]
        if not self._goes_on():
            self.passed = 0
            if self.longer:
                self.grown = True
                self._observe_again()
        self._look_at_gradients(arguments)
        place = None if self.settled else len(self.calls)
        if place is not None:
            self.allowance.look_at_buckets(arguments)
            before_backward(self._look_at_eager)
            self.around = self.around or around(arguments)
            self._look_beside(arguments)
            self.calls.append(ForwardRun(graph, tuple(run.graph for run in self._observed())))
        self.waiting.append(Run(graph, arguments, place))
        runs = len(self.waiting) + self.passed
        if self.settled:
            self.longer = self.longer or runs > self.most
        else:
            self.most = max(self.most, runs)

    def end_forward(self, saved: list[Any]) -> None:
        """The forward pass that began last is over."""
        if self.waiting:
            self.waiting[-1].end(saved)

    def _goes_on(self) -> bool:
        """Whether a run that begins belongs to the same step as the one before it."""
        return bool(self.waiting) or under_way(self.around)

    def _observed(self) -> list[Run]:
        return [run for run in self.waiting if run.place is not None]

    def _look_beside(self, arguments: list[Any]) -> None:
        """Watch what is there besides what graphs made: what they are given, and what ranks hold."""
        tensors = plain_tensors_of([arguments, held_by(self.around)])
        self.given.made([x for x in tensors if self.given.knows(x) or not self.meter.knows(x)])
        self.meter.made(tensors)

    def _look_at_eager(self, roots: Sequence[Any]) -> None:
        """A backward pass is about to begin."""
        if not self.settled:
            self.meter.follow(roots)

    def _look_at_gradients(self, arguments: list[Any]) -> None:
        """Gradients of earlier batches are held besides the graphs; those of this step are in its memory."""
        if self.passed:
            return
        held = [x.grad for x in arguments if isinstance(x, torch.Tensor) and x.is_leaf and x.grad is not None]
        if not held:
            return
        if not self.waiting:
            self.earlier = Meter()
        self.earlier.watch(held)
        if self.earlier.most > self.allowance.earlier and self.earlier.count() > self.allowance.earlier:
            self.allowance.earlier, self.grown = self.earlier.most, True
            if self.settled:
                self._observe_again()

    def begin_backward(self, graph: int, arguments: list[Any]) -> None:
        """The graph's backward pass begins."""
        own = [run for run in reversed(self.waiting) if run.graph == graph]
        run = next((run for run in own if run.saved_any(arguments)), own[0] if own else None)
        if run is not None:
            self.waiting.remove(run)
            self.passed += 1
        if self.settled:
            return
        self._look_beside([])
        if run is not None and run.place is not None:
            left = self.left.count() - self.left.part(arguments)
            self.calls[run.place] = replace(self.calls[run.place], gradients=left)
        with suppress(RuntimeError):  # outside of the autograd engine a step has no end to wait for
            # a backward pass may be called inside a compiled function, where torch would compile what it calls
            at_the_end_of_backward(disable(self._end))

    def end_backward(self, gradients: Any) -> None:
        """A graph's backward pass returned these."""
        if not self.settled:
            self.left.watch(gradients)

    def _end(self) -> None:
        """The backward pass of the whole step is over."""
        if self.settled or self._observed() or not self.calls or under_way(self.around):
            return
        self.settled = True
        self._judge()
        if self.settled:
            self._tell_of_eager()

    def _tell_of_eager(self) -> None:
        """Say once where eager held more beside the graphs than these do by themselves."""
        held, figure, told = self.meter.whole, max(self.meter.peak, self.foretold), self.outside
        if held > figure + FEW:
            self.outside = (
                f"remat: with what ran in eager this step held at least {show_bytes(held)}, where its graphs hold"
                f" {show_bytes(figure)}: what eager holds for the backward pass is in no figure, and in no budget. A"
                " loss that the compiled module computes itself is in both"
            )
            if not told:
                warnings.warn(self.outside, RematWarning, stacklevel=2)

    def _judge(self) -> None:
        """A whole step was observed: is it within the budget?"""
        given, held = self.given.peak, self.meter.peak
        beside = unforeseen(self.needs, self.calls, given, held)
        budget, runs = self.divided
        grown, self.grown = self.grown, False
        if anew := grown or self.most > runs:
            whole = whole_peak(self.needs, self.calls, given) + beside
            budget = self.allowance.bytes(whole, self.meter.count())
        if len(self.calls) == 1 and not self.around:
            if grown and held > budget:
                if self.allowed is not None:
                    self._compile_again(self._over(held, budget))
                    return
                self.over.append(f"{self._over(held, budget)}; no less is known")
            if self.allowed is not None and held > self.allowed:
                text = f"remat: this step held {show_bytes(held)}, more than the {show_bytes(self.allowed)} allowed:"
                text += " values stay after their last use, as with backward(retain_graph=True), or results of other"
                self.over.append(text + " runs, as a validation's, are still held")
            for words in self.over:
                warnings.warn(words, RematWarning, stacklevel=2)
        elif held > budget:
            if anew:
                self.rooms, self.divisions = {}, 0
            self.divided = budget, self.most
            self.beside = max(beside, self.beside) if self.divisions else beside
            self._divide(given, budget - self.beside, self._over(held, budget))

    def _over(self, held: int, budget: int) -> str:
        """What is said of a step that held more than it may."""
        count, calls, earlier = len(self.needs), len(self.calls), self.allowance.earlier
        runs = f"{count} graphs" if count > 1 else f"{calls} runs of the graph" if calls > 1 else "graph"
        together = " together" if calls > 1 else ""
        text = f"remat: the {runs} of this step held {show_bytes(held)}{together}{named(self.around)}, more than"
        if not earlier:
            return f"{text} the budget of {show_bytes(budget)}"
        return f"{text} {show_bytes(budget)}, beside {show_bytes(earlier)} of gradients of earlier batches"

    def _divide(self, given: int, budget: int, text: str) -> None:
        """Give each graph its room."""
        if self.rooms and (self.least or self.divisions == DIVISIONS):
            warnings.warn(f"{text}; no less is known", RematWarning, stacklevel=2)
            return
        rooms = divide(self.needs, self.calls, given, budget)
        self.rooms = {graph: (self.needs[graph].ops, room) for graph, room in rooms.items()}
        self.divisions, self.least = self.divisions + 1, budget <= whole_peak(self.needs, self.calls, given, 0.0)
        self._compile_again(text, "them again, each with its share")

    def _compile_again(self, text: str, what: str = "it again") -> None:
        warnings.warn(f"{text}; the next step compiles {what}", RematWarning, stacklevel=2)
        self._observe_again()
        self.needs, self.foretold = [], 0
        self.again()

    def _observe_again(self) -> None:
        self.settled = self.longer = False
        self.meter = StepMeter()
        self.given, self.left = Meter(), Meter()
        self.calls, self.over, self.around = [], [], []
        for run in self.waiting:
            run.place = None
