"""`remat grad`: from a forward model to its training graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli.commands import options


@click.command("grad", cls=options.GroupedCommand)
@click.argument("forward", type=options.FILE)
@options.loss
@options.logits
@click.option("--outputs", multiple=True, help="Outputs of the model that the step has too (repeat, or use commas).")
@options.class_axis
@options.wrt
@click.option(
    "--params-from",
    type=options.FILE,
    help="Train what this file names, one name to a line: what the module calls its parameters.",
)
@click.option("--tie", "ties", type=options.TIE, multiple=True, help="Two names of one parameter: --tie wte=head.")
@click.option("--as-exported", is_flag=True, help="Train what stands in the file, whatever its exporter did to it.")
@click.option("--batch", type=click.IntRange(1), help="Size of the inputs' first dimension, where it is dynamic.")
@click.option(
    "--shape", "shapes", type=options.SHAPE, multiple=True, help="Shape of an input: --shape input=1,3,224,224."
)
@options.dims
@options.optimizer
@click.option("--learning-rate", type=float, default=0.01, show_default=True, help="Its default; it stays an input.")
@click.option("--weight-decay", type=float, help="[default: 0.01 of adamw, else 0]")
@click.option("--betas", type=options.PAIR, help="Of adam and adamw: 0.9,0.95.  [default: 0.9,0.999]")
@click.option("--eps", type=float, help="Of adam and adamw.  [default: 1e-8]")
@click.option("--momentum", type=float, help="Of momentum.  [default: 0.9]")
@click.option("--clip", type=float, help="Hold all gradients together to this norm.")
@click.option("--group", "groups", multiple=True, help="Other settings by name: '*.bias:weight_decay=0'.")
@click.option(
    "--accumulate",
    is_flag=True,
    help="Add gradients to sums that come in, instead of giving them: for several batches an update.",
)
@options.train
@options.freeze_bn
@click.option(
    "--precision",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Products in this type, parameters, sums and the loss in float32; float16 with a scaled loss.",
)
@click.option("--table", is_flag=True, help="List every parameter; by default the largest.")
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Where it is to run: for cuda, what has no kernel there is named.",
)
@options.output
@options.as_json
@options.quiet
def command(forward: Path, **given: Any) -> None:
    """Write the training graph of the model FORWARD: loss, gradients and updates in standard ONNX ops.

    Its inputs are the data, `labels` (cross-entropy) or `target` (mse), and every parameter under its own name; its
    outputs `loss` and `<parameter>_grad`, or with an optimizer `<parameter>_new`, or with --accumulate
    `<parameter>_grad_sum_new`. FORWARD is an ONNX file, or what torch.export saved (.pt2, which may run code).

    \b
    remat grad resnet50.onnx
    remat grad gpt2.onnx --batch 4 --dim sequence=256 --optimizer adamw
    remat grad unet.onnx --class-axis -1
    """
    from remat_cli.commands.grad_answer import grad

    grad(forward, given)
