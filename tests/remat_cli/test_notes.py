"""Every kind of note has a sentence, and a sentence has places for what notes of its kind hold."""

from __future__ import annotations

import pytest

from remat_cli.notes.kinds import OF_ANY_MODEL, WHY_NONE, PlanNote
from remat_cli.notes.words import SENTENCES, sentence
from solvers.notes import Note, SolverNote


def test_every_kind_has_a_sentence() -> None:
    assert set(SENTENCES) == {*PlanNote, *SolverNote}
    assert set(PlanNote) >= OF_ANY_MODEL | WHY_NONE


def test_a_note_from_a_file_is_the_note_that_was_kept() -> None:
    """Kinds are read back as plain strings."""
    assert Note("walked") == Note(PlanNote.WALKED)
    assert sentence(Note("walked")) == sentence(Note(PlanNote.WALKED))


def test_values_stand_in_their_places() -> None:
    note = Note(SolverNote.ROUNDED_OVER, (0.5, 20, 110, 10, 0.1))
    assert sentence(note) == "Rounded at 0.5: time 20, peak 110, which is 10B (10.0%) over the budget."
    with pytest.raises(IndexError):
        sentence(Note(SolverNote.OVER_BUDGET))
