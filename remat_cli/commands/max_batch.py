"""`remat max-batch`: the largest batch, or other dimension, whose training step fits a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remat_cli import usual
from remat_cli.commands import methods, options


@click.command("max-batch", cls=options.GroupedCommand)
@click.argument("model", type=options.FILE)
@click.option("--budget", type=options.SIZE, required=True, help="16GB, 16GiB or bytes.")
@click.option(
    "--max-overhead",
    "share",
    type=options.ALLOWANCE,
    default="forward",
    show_default=True,
    help="How much longer the step may take: by one more forward pass, or a share such as 20%.",
)
@methods.one
@methods.baselines
@click.option(
    "--dim",
    "sized",
    type=options.SIZED,
    multiple=True,
    help="Which symbolic dimension is made largest, --dim sequence=max (default: the batch), and others' sizes.",
)
@click.option("--step", type=click.IntRange(1), default=1, show_default=True, help="Try multiples of this only.")
@click.option("--grad/--no-grad", "forward", default=None, help="MODEL is a forward model, or has its backward pass.")
@options.loss
@options.logits
@options.class_axis
@options.wrt
@options.optimizer
@options.train
@options.freeze_bn
@options.costs
@options.estimate("Nothing is measured")
@click.option("--profile", "profiled", type=options.SIZES, help="Measure ops at these sizes, and fit: --profile 2,8.")
@click.option(
    "--measure/--no-measure",
    default=None,
    help="Measure ops at the size that comes out, and solve again.  [default: unless --costs or --estimate]",
)
@options.runtime
@options.in_place
@options.pieces
@options.time_for_all(usual.LARGEST_TIME)
@options.work_limit
@options.seed
@options.force
@options.output
@options.as_json
@options.quiet
def command(model: Path, **given: Any) -> None:
    """Find the largest batch of MODEL whose training step fits the budget, and prove that the next does not.

    MODEL is a forward model or a training graph whose batch is symbolic. Ops cost what they are measured to at a few
    sizes (--profile 2,8), what MODEL.costs.yaml says, or an estimate. At the size that is found, ops are measured on
    this machine and the plan is made for these costs.

    \b
    remat max-batch unet.onnx --budget 16GB
    remat max-batch gpt2.train.onnx --budget 24GB --dim batch=8 --dim sequence=max
    """
    from remat_cli.commands.max_batch_answer import largest

    largest(model, given)
