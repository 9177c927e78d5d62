"""A program of torch.export, as `grad` takes it: its model in ONNX, and what of it is trained by torch's own word.

Invariant: parameters are those of the program's signature that require a gradient, each by all its names; what ran
under no_grad leads no gradient. The program that was given is as it was. PyTorch is imported only where there is one.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from remat_cli.errors import BadInput, Usage
from remat_cli.gradient.exported import STACK, first_of

SUFFIX = ".pt2"
NO_GRAD = "wrap_with_set_grad_enabled"
STACKED = ("aten.rnn_tanh.input", "aten.rnn_relu.input")  # (input, state, weights, biases, layers, share, trains, ...)
COUNTER = "num_batches_tracked"  # of a BatchNorm, which no result depends on
SPEAKING = ("torch.onnx", "torch.export")  # torch's loggers; what they say as an error is kept
NEEDS = "to read what torch.export made, install PyTorch and onnxscript: pip install 'remat[torch]' onnxscript"


@dataclass(frozen=True, slots=True)
class Exported:
    """`notes`: on what the module does in a step and the model does not."""

    program: Any
    model: onnx.ModelProto
    notes: tuple[str, ...] = ()

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """As of the module: with `remove_duplicate` each by its first name alone."""
        seen: set[int] = set()
        for name, value in self.program.named_parameters():
            if not remove_duplicate or id(value) not in seen:
                seen.add(id(value))
                yield name, value

    @property
    def trained(self) -> list[list[str]]:
        """The names of each parameter that requires a gradient."""
        names: dict[int, list[str]] = {}
        for name, value in self.program.named_parameters():
            if value.requires_grad:
                names.setdefault(id(value), []).append(name)
        return list(names.values())


def is_program(given: object) -> bool:
    """Whether it is what `torch.export.export` gives, or a path of that."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given).endswith(SUFFIX)
    return hasattr(given, "graph_signature") and hasattr(given, "named_parameters")


def read_program(path: Path) -> Any:
    """The program that `torch.export.save` wrote. It may run code, as torch says: it is to be the user's own."""
    from zipfile import BadZipFile

    try:
        import torch
    except ImportError as error:
        raise Usage(NEEDS) from error
    try:
        with _quietly():
            return torch.export.load(path)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except (BadZipFile, KeyError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"{path} is no program that torch.export.save wrote, or one of another version of torch"
        ) from error


def exported(given: Any) -> Exported:
    """The program, or that in the file at this path, in ONNX, none of its parameters folded or merged."""
    program = read_program(Path(given)) if isinstance(given, str | os.PathLike) else given
    with _quietly(), _detached(program.graph_module):
        made = _in_onnx(program)
    model = made.model_proto
    for node in model.graph.node:  # it tells of regions of no_grad, which are seen to
        for place in reversed([place for place, one in enumerate(node.metadata_props) if one.key == STACK]):
            del node.metadata_props[place]
    return Exported(program, model, tuple(_notes(program, made)))


def _in_onnx(program: Any) -> Any:
    import torch

    try:
        return torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
    except ImportError as error:
        raise Usage(NEEDS) from error
    except torch.onnx.OnnxExporterError as error:
        why = next((line for line in str(error.__cause__ or error).splitlines() if line.strip()), "")
        raise BadInput(f"PyTorch cannot write the program in ONNX: {why}") from error


@contextmanager
def _detached(module: Any) -> Iterator[None]:
    """Have what regions of no_grad give end with detach, as ONNX has no such regions. None has one of enable_grad
    within it: torch.export cuts it there."""
    import torch

    added = []
    for node in list(module.graph.nodes):
        if getattr(node.target, "__name__", "") != NO_GRAD or node.args[0]:
            continue
        for result in list(node.users):
            with module.graph.inserting_after(result):
                cut = module.graph.call_function(torch.ops.aten.detach.default, (result,))
            cut.meta = dict(result.meta)
            result.replace_all_uses_with(cut, delete_user_cb=lambda user, cut=cut: user is not cut)
            added.append(cut)
    try:
        yield
    finally:
        for cut in added:
            cut.replace_all_uses_with(cut.args[0])
            module.graph.erase_node(cut)
        module.recompile()


def _notes(program: Any, made: Any) -> Iterator[str]:
    """What the module does in a step, and the graph does not."""
    recurrent = [node for node in program.graph.nodes if str(node.target) in STACKED]
    if stacked := [node.name for node in recurrent if node.args[4] > 1 and node.args[5] and node.args[6]]:
        yield (
            f"PyTorch's exporter leaves out the dropout between the layers of nn.RNN ({first_of(stacked)}): nothing is "
            "dropped there; make one nn.RNN for each layer, with nn.Dropout between"
        )
    averaged = {
        name for node in made.model_proto.graph.node if node.op_type == "BatchNormalization" for name in node.input
    }
    changed = made.exported_program.graph_signature.buffers_to_mutate.values()
    if left := sorted(name for name in set(changed) - averaged if not name.endswith(COUNTER)):
        yield f"the module changes buffers as it runs ({first_of(left)}), and the step does not"


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what torch says to those who work on its exporter."""
    levels = {logger: logger.level for logger in map(logging.getLogger, SPEAKING)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in levels:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in levels.items():
                logger.setLevel(level)
