"""What a session of a plan is made from: files that the runtime maps, and what else the session must know.

Invariant: a plan in a file is read and rewritten by another process, so the user's process holds nothing of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remat_cli import errors
from remat_cli.children import Child
from remat_cli.training.failing import WrittenState

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class SessionParts:
    """`tensors`: the folder of the model's external tensors. `placed`: whether values lie where a plan says, which is
    the table in the file `places`, or where there is none, where a first run shows that they can. `in_place`, `before`:
    what runs write over what, and the ops that run only before that. `notes`: what is to be said of runs. `frame`: the
    file of the step without its nodes. `weights`: the fields of `Weights`, where runs may let go of them."""

    model: str
    tensors: str
    runtime: str
    threads: int
    placed: bool
    places: str = ""
    in_place: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[str] = ()
    notes: Sequence[str] = ()
    frame: str = ""
    weights: Sequence[Any] = ()

    @property
    def written(self) -> WrittenState:
        return WrittenState(frozenset(self.in_place.values()), frozenset(self.before))

    def framed(self) -> onnx.ModelProto:
        """The training step without its nodes."""
        import onnx

        return onnx.ModelProto.FromString(Path(self.frame).read_bytes())


def written_elsewhere(plan: Path, folder: Path) -> SessionParts | None:
    """The parts that another process wrote; None where there can be none."""
    try:
        with Child("remat_cli.actions.session_writing") as child:
            said = child.ask([str(plan), str(folder)])
    except OSError:
        return None
    if said is None:
        return None
    if "error" in said:
        raise getattr(errors, said["error"])(said["says"])
    return SessionParts(**said)
