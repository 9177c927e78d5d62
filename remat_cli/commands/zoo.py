"""`remat zoo`: build a well-known network as a forward ONNX model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from onnx import ModelProto

from remat_cli.commands import options
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.zoo.build import describe
from remat_cli.zoo.graph import PARAMETERS, Builder
from remat_cli.zoo.names import ZOO

SIZES = {
    "batch": "Examples in a step.",
    "image": "Height and width of the images: 224, or 416x608.",
    "channels": "Channels of the images.",
    "classes": "What the logits choose among.",
    "layers": "Blocks or layers, where the network has them to spare.",
    "seq": "Tokens in a sequence.",
    "hidden": "Features of a token, or of a hidden layer.",
    "heads": "Heads of attention.",
    "width": "Channels of the first convolution.",
    "features": "Features of an example (mlp).",
    "vocabulary": "Token ids there are.",
    "embedding": "Features of an embedding, where it has fewer than the layers (ALBERT).",
    "positions": "The longest sequence there is a position for.",
    "patch": "Side of a patch (ViT).",
}


def _networks(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """What a shell offers for NAME."""
    return [name for name in ZOO if name.startswith(begun)]


def size_options(command: click.decorators.FC) -> click.decorators.FC:
    for name, text in reversed(SIZES.items()):
        kind = options.IMAGE if name == "image" else click.IntRange(1)
        command = click.option(f"--{name}", type=kind, help=text)(command)
    return command


@click.command("zoo", cls=options.GroupedCommand)
@click.argument("name", required=False, shell_complete=_networks)
@click.option("--list", "listing", is_flag=True, help="List the networks (the same as giving no name).")
@size_options
@click.option("--free-batch", is_flag=True, help="A batch of any size, which max-batch makes largest.")
@click.option("--upsample", type=click.Choice(["transposed", "nearest", "linear"]), help="How U-Net goes up again.")
@click.option("--dropout", type=click.FloatRange(0, 1, max_open=True), default=0.0, help="Ratio; none by default.")
@click.option(
    "--weights",
    type=click.Choice(["auto", "random", "inputs"]),
    default="auto",
    show_default=True,
    help="Random initial values in the file, or inputs of the model; auto: values up to 256 MiB of them.",
)
@click.option("--eval", "evaluate", is_flag=True, help="BatchNormalization and Dropout as for inference.")
@click.option("--opset", type=int, default=20, show_default=True)
@options.seed
@options.output
@options.as_json
@options.quiet
def command(
    name: str | None, listing: bool, weights: str, output: Path | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Build the network NAME as a forward ONNX model, for `remat grad` to differentiate.

    Its data input is called input and its output logits. The sizes a network has depend on the network: a wrong one
    is refused with the list. All shapes are static, but for a free batch. Segmentation networks give their logits with
    the class as the last axis.

    \b
    remat zoo resnet50 --batch 32 -o resnet50.onnx
    remat zoo gpt2 --layers 4 --seq 256
    remat zoo unet --upsample linear --image 128
    remat zoo vit-b16 --free-batch
    """
    if name is None or listing:
        return _list_networks({key: network.about for key, network in ZOO.items()}, as_json)
    path = output or Path(f"{name}.onnx")
    check_place(path, FileKind.MODEL)
    settings = {key: value for key, value in given.items() if value is not None and key != "evaluate"}
    net, logits = describe(name, training=not given["evaluate"], **settings)
    model = net.finish(name, logits, weights)
    write_whole(path, model.SerializeToString(deterministic=True))
    report = {"model": str(path), "network": name, **_figures(net, model)}
    if as_json:
        options.say_object(report)
    elif not quiet:
        click.echo(_describe(report))


def _figures(net: Builder, model: ModelProto) -> dict[str, Any]:
    return {
        "nodes": len(model.graph.node),
        "parameters": net.count_parameters(),
        "weights": "inputs" if PARAMETERS in said_in(model) else "random",
        "input": net.shown("input"),
        "logits": net.shown("logits"),
    }


def _list_networks(networks: dict[str, str], as_json: bool) -> None:
    if as_json:
        return options.say_object(networks)
    for name, about in networks.items():
        click.echo(f"{name:<16} {about}")


def _describe(report: dict[str, object]) -> str:
    return (
        f"{report['model']}: {report['nodes']} nodes, {report['parameters']:,} parameters"
        f"{' (inputs of the model)' if report['weights'] == 'inputs' else ''},"
        f" input {report['input']}, logits {report['logits']}"
    )
