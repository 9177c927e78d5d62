"""What `grad` does once its flags are read, and says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from onnx import ModelProto

from remat_cli.actions.differentiating import differentiate, notes_of, parameters_of
from remat_cli.actions.exporting import Exported, exported, is_program
from remat_cli.actions.recipes import read_groups, recipe_of
from remat_cli.commands import options
from remat_cli.errors import BadInput
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.gradient.classes import named_class_axis
from remat_cli.gradient.parameters import Choice, Parameter
from remat_cli.gradient.prepare import Binding
from remat_cli.gradient.training import Options
from remat_cli.model.semantics import without_kernel
from remat_cli.onnx_graph.load import load_with_tensors
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes

LARGEST_ROWS = 8  # rows of the table, unless all are asked for
SETTINGS = ("learning_rate", "weight_decay", "betas", "eps", "momentum", "clip")  # of the optimizer


def grad(forward: Path, given: Mapping[str, Any]) -> None:
    """Write the training graph."""
    path = given["output"] or forward.with_suffix(".train.onnx")
    check_place(path, FileKind.MODEL, forward)
    asked, lost = _options(given), tuple[str, ...]()
    if is_program(forward):
        program = exported(forward)
        model, lost = load_with_tensors(program.model), program.notes
        asked = asked if asked.choice.params else replace(asked, choice=_trained(asked.choice, program))
    else:
        model = load_with_tensors(forward)
    nodes = len(model.graph.node)
    training = differentiate(model, asked)
    write_whole(path, training.SerializeToString(deterministic=True))
    _tell(training, path, nodes, lost, given)


def _trained(choice: Choice, program: Exported) -> Choice:
    """What requires a gradient in the module."""
    groups = program.trained
    return replace(choice, params=[name for names in groups for name in names], groups=groups)


def _options(given: Mapping[str, Any]) -> Options:
    """What is asked of the training graph."""
    chosen = {name: given[name] for name in SETTINGS} | {"groups": read_groups(given["groups"])}
    wanted = options.names_among(given["wrt"])
    return Options(
        loss=given["loss"],
        logits=given["logits"],
        class_axis=given["class_axis"],
        outputs=options.names_among(given["outputs"]),
        choice=Choice(wanted, _names_in(given["params_from"]), given["ties"], given["as_exported"]),
        binding=Binding(dict(given["shapes"]), given["batch"], dict(given["dims"])),
        recipe=recipe_of(given["optimizer"], chosen),
        freeze_bn=given["freeze_bn"],
        train=given["train"],
        precision=given["precision"],
        accumulate=given["accumulate"],
    )


def _names_in(path: Path | None) -> list[str]:
    """The first word of each line; what follows, such as a shape, is for people."""
    if path is None:
        return []
    try:
        names = [line.split()[0] for line in path.read_text().splitlines() if line.split()]
    except OSError as error:
        raise BadInput(f"cannot read the names of parameters in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} holds no names of parameters: it is not even text") from error
    if not names:
        raise BadInput(f"{path} names no parameters; write one to a line")
    return names


def _tell(training: ModelProto, path: Path, forward_nodes: int, lost: Sequence[str], given: Mapping[str, Any]) -> None:
    """What was written, its parameters, and what is to be said of it."""
    trained, notes = parameters_of(training), [*lost, *_notes(training, given)]
    report = {
        "model": str(path),
        "forward_nodes": forward_nodes,
        "nodes": len(training.graph.node),
        "inputs": [value.name for value in training.graph.input],
        "outputs": [value.name for value in training.graph.output],
        "class_axis": named_class_axis(training),
        "parameters": [asdict(parameter) for parameter in trained],
        "notes": notes,
    }
    if given["as_json"]:
        options.say_object(report)
    elif not given["quiet"]:
        click.echo(_describe(report))
        if named_class_axis(training) is not None:
            click.echo(_chosen(training))
        elif given["loss"] is None:
            click.echo("The model's first output is a scalar and is taken for its loss (see --loss).")
        click.echo(_parameter_table(trained, every=given["table"]))
        for note in notes:
            click.echo(f"note: {note}", err=True)


def _notes(training: ModelProto, given: Mapping[str, Any]) -> list[str]:
    notes = list(notes_of(training))
    if given["device"] == "cuda":
        notes += [f"no kernel on CUDA, so run on the CPU: {what}" for what in without_kernel(training)]
    elif given["precision"] == "bfloat16":
        notes.append("onnxruntime's CPU has no kernels for bfloat16: run it on CUDA, or take --precision float16")
    return notes


def _chosen(training: ModelProto) -> str:
    """Which axis the labels choose from, and the input whose shape follows from that."""
    labels = next(value for value in training.graph.input if value.name == "labels")
    shape = [dim.dim_value for dim in labels.type.tensor_type.shape.dim]
    axis = named_class_axis(training)
    return f"The labels have shape {shape}: classes are on axis {axis} of the logits (see --class-axis)."


def _describe(report: dict[str, Any]) -> str:
    trained = sum(name.endswith(("_grad", "_new")) for name in report["outputs"])
    return (
        f"wrote {report['model']}: {report['nodes']} nodes (forward: {report['forward_nodes']}), "
        f"{len(report['inputs'])} inputs, loss and {trained} more outputs"
    )


def _parameter_table(parameters: Sequence[Parameter], every: bool) -> str:
    """The largest parameters, or all of them. The others share one row, so that the columns add up."""
    ranked = parameters if every else sorted(parameters, key=lambda one: -one.bytes)
    shown = ranked if every or len(ranked) <= LARGEST_ROWS + 1 else ranked[:LARGEST_ROWS]
    rows = [["parameter", "shape", "read", "gradient"]]
    rows += [
        [one.name, "x".join(map(str, one.shape)) or "scalar", str(one.reads), show_bytes(one.bytes)] for one in shown
    ]
    if rest := ranked[len(shown) :]:
        rows.append([f"{len(rest)} more (--table)", "", "", show_bytes(sum(one.bytes for one in rest))])
    rows.append([f"{len(parameters)} in all", "", "", show_bytes(sum(one.bytes for one in parameters))])
    return table(rows, left=(0, 1))
