"""Explains why there is no plan, and the ways out: one line by default, and the whole account for `-v`.

Invariant: a budget that is named as enough is one that a plan was found for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from remat_cli.model.quantities import BYTES, Budget
from remat_cli.notes.kinds import WHY_NONE, PlanNote
from remat_cli.notes.words import sentence
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.proofs import least_needed
from remat_cli.planning.search.untouched import share_base
from remat_cli.planning.subjects.subject import Subject
from remat_cli.units import show_bytes
from solvers.problem import Status

FEW_BYTES = 1000  # a smaller budget is probably a mistake, unless the model itself is as small
GRADIENTS_SHARE = 0.4  # share of a budget; gradients that take more of it and stay to the end are mentioned
NAMED_VALUES = 5


def why_not(answer: Answer) -> str:
    """One line: the question, what every schedule needs, and what to try."""
    name, asked = answer.subject.path.name, _asked(answer)
    if answer.status is Status.INFEASIBLE:
        words = f"no plan of {name} fits {asked}, which is proved{_of_the_order_alone(answer)}"
    else:
        words = f"{answer.method} found no plan of {name} within {asked}"
    if answer.says(PlanNote.HELD_IN_ANY_CASE):
        words += f": {_held_in_any_case(answer)} alone take {_in_unit(answer, least_bytes(answer) or 0)}"
    elif (least := _least_of_those(answer)) is not None:
        words += f": at least {_in_unit(answer, least)} is needed"
    given_up = [note for note in answer.schedule.result.notes if note.kind in WHY_NONE]
    if given_up:
        words += f", as {sentence(given_up[-1])}"
    return words + _ways_out(answer)


def explain(answer: Answer) -> list[str]:
    """The whole account: the op at which every schedule needs most, and what the best schedule found holds there."""
    lines = [] if (least := least_peak_bound(answer)) is None else [least]
    if (fixed := answer.subject.problem.resident + answer.aside) > answer.budget:
        lines.append(f"{_held_in_any_case(answer).capitalize()} alone take {show_bytes(fixed)}.")
    lines += [gradients_held(answer.subject, answer.budget)]
    return [line for line in [*lines, *_best_found(answer)] if line]


def _held_in_any_case(answer: Answer) -> str:
    """What a budget below it says: default sessions are refused by what any session holds, without kernels' copies."""
    counted = answer.aside > 0 and (least_bytes(answer) or 0) >= answer.subject.problem.resident + answer.aside
    return "inputs and weights, with the copies that kernels make," if counted else "inputs and weights"


def _best_found(answer: Answer) -> list[str]:
    """The least budget that is known to be enough, and what is held then."""
    outcome, order = answer.schedule.outcome, answer.schedule.result.order
    if outcome is None or order is None:
        return []
    lines = []
    if (enough := least_needed(answer)) is not None and enough > answer.budget:
        lines.append(f"A plan is known for --budget {enough} ({show_bytes(enough)}).")
    if outcome.peak <= answer.budget and answer.promise is not None:
        return [
            *lines,
            f"The best plan found has {show_bytes(outcome.peak)} live and needs {show_bytes(answer.held)}.",
        ]
    where = answer.subject.nodes[order[outcome.peak_step]]
    peak = show_bytes(outcome.peak + answer.aside)
    return [*lines, f"The least peak found is {peak}, at {where}{_what_fills(answer, outcome.peak_values)}."]


def gradients_held(subject: Subject, budget: int) -> str:
    """The bytes of gradients that are outputs, and so stay to the end, where they are much of a budget that is too
    small."""
    graph = subject.graph
    if graph is None:
        return ""
    bytes_held = sum(graph.values[name].bytes for name in graph.outputs if name.endswith("_grad"))
    if bytes_held < GRADIENTS_SHARE * budget:
        return ""
    return f"Gradients, which are outputs, take {show_bytes(bytes_held)} to the end."


def least_bytes(answer: Answer) -> int | None:
    """The proved least memory of every schedule, whatever its order."""
    needed = answer.schedule.result.needed
    return None if needed is None else needed + answer.aside


def least_peak_bound(answer: Answer) -> str | None:
    """The proved least memory of every schedule, and the op that needs it."""
    result, least = answer.schedule.result, least_bytes(answer)
    if least is None:
        return None
    words = f"Every plan needs at least {show_bytes(least)}"
    if result.needed != result.peak_bound or not result.peak_values:
        return f"{words}."
    words += ", at the end" if result.peak_node is None else f", at {answer.subject.nodes[result.peak_node]}"
    return f"{words}{_what_fills(answer, result.peak_values)}."


def _least_of_those(answer: Answer) -> int | None:
    """The proved least memory of the schedules that a refusal speaks of."""
    proof = answer.schedule.result.impossible
    return least_bytes(answer) if proof is None else proof.least + answer.aside


def _of_the_order_alone(answer: Answer) -> str:
    proof = answer.schedule.result.impossible
    in_order = proof is not None and proof.in_order
    return " of schedules that first compute the ops in the order given" if in_order else ""


def _asked(answer: Answer) -> str:
    """The budget in the user's own unit."""
    said = answer.said
    return str(said) if said is not None and said.unit not in ("", "B") else show_bytes(answer.budget)


def _in_unit(answer: Answer, size: int) -> str:
    """A size in the unit of the budget: a share with its bytes, or bytes."""
    said = answer.said
    if said is None or not said.relative:
        binary = said is not None and "i" in said.unit
        return f"{size / BYTES[said.unit.upper()]:.4g}{said.unit}" if said and binary else show_bytes(size)
    return f"{100 * size / _base(answer):.4g}% ({show_bytes(size)})"


def _base(answer: Answer) -> int:
    """The bytes that a share is a share of."""
    if answer.whole is not None:
        return max(1, answer.whole)
    return max(1, answer.baseline.peak if answer.session is None else share_base(answer.subject, answer.session))


def _ways_out(answer: Answer) -> str:
    """Commands to run instead."""
    enough, graph = least_needed(answer), answer.subject.graph
    ways = []
    plain = answer.said is None or answer.said.unit == ""
    if graph is not None and plain and 0 < answer.budget < FEW_BYTES <= answer.baseline.peak:
        ways.append("a plain number is bytes" + _meant(answer.budget))
    elif answer.says(PlanNote.HELD_IN_ANY_CASE):
        ways.append("try --minimize peak, which finds how little is enough")
    elif enough is not None and enough > answer.budget:
        said = answer.said or Budget(Fraction(answer.budget))
        ways.append(f"try --budget {said.enough(enough, _base(answer))}")
    elif answer.status is not Status.INFEASIBLE:
        ways.append("try a longer --time-limit")
    for note in answer.schedule.result.notes:
        if note.kind is PlanNote.LESS_IN_PIECES:
            ways.append(f"{sentence(note)}: --pieces auto")
    if graph is not None and not any(op.backward for op in graph.ops):
        ways.append(f"to train it, begin with `remat grad {answer.subject.path.name}`")
    return "".join(f"; {way}" for way in ways)


def _meant(number: int) -> str:
    """What a number of bytes was meant to be that is too small to be one."""
    share = f"{number}% or " if number <= 100 else ""
    return f": did you mean {share}{number}GB?"


def _what_fills(answer: Answer, values: Sequence[int]) -> str:
    """The inputs and weights, and the largest values held beside them."""
    problem, names = answer.subject.problem, answer.subject.values
    largest = sorted(set(values), key=lambda value: (-problem.sizes[value], value))[:NAMED_VALUES]
    parts = [f"inputs and weights {show_bytes(problem.resident)}"] if problem.resident else []
    parts += [f"copies that kernels make beside {show_bytes(answer.aside)}"] if answer.aside else []
    parts += [f"{names[value]} {show_bytes(problem.sizes[value])}" for value in largest]
    more = len(set(values)) - len(largest)
    return f" with {', '.join(parts)}" + (f" and {more} more" if more > 0 else "") if parts else ""
