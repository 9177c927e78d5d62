"""Dropout as a mask and its use: the same bits, the same random numbers, and less to hold."""

from __future__ import annotations

import operator

import pytest
import torch
from torch import nn

from remat_cli.torch import dropout
from tests.torch.steps import backend, measured, step, twin

WIDTH = 64
INPUTS = {
    "rows": torch.randn(37, 65),
    "columns": torch.randn(65, 37).t(),
    "a slice": torch.randn(8, 9, 7)[:, ::2],
    "expanded": torch.randn(1, 7).expand(5, 7),
    "channels last": torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),
    "a number": torch.tensor(2.0),
    "nothing": torch.empty(0, 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", INPUTS)
def test_two_ops_do_what_the_one_does(name: str, dtype: torch.dtype) -> None:
    """Where it splits at all, so do the bits agree, with PyTorch's own op as the witness."""
    x = INPUTS[name].to(dtype)
    for share in (0.0, 0.1, 0.15, 0.3, 0.5, 0.9, 1.0):
        graph, mode = torch.fx.Graph(), torch._subclasses.FakeTensorMode()
        given = graph.placeholder("x")
        node = graph.call_function(dropout.DROPOUT, (given, share, True))
        with mode:
            given.meta["val"] = mode.from_tensor(x)
            node.meta["val"] = dropout.DROPOUT(given.meta["val"], share, True)
        parts = [graph.call_function(operator.getitem, (node, place)) for place in (0, 1)]
        graph.output(tuple(parts))
        dropout.split(graph)
        torch.manual_seed(3)
        found = (*torch.fx.GraphModule({}, graph)(x), torch.rand(2))
        torch.manual_seed(3)
        for own, its in zip(found, (*dropout.DROPOUT(x, share, True), torch.rand(2)), strict=True):
            assert torch.equal(own, its)
            assert own.stride() == its.stride()
        if name == "rows":
            drawn = graph.find_nodes(op="call_function", target=dropout.DRAW)
            assert len(drawn) == 1


@pytest.mark.parametrize(("dtype", "share"), [(torch.float32, "55%"), (torch.bfloat16, "60%")])
def test_only_masks_must_be_held(dtype: torch.dtype, share: str) -> None:
    """What eight dropouts leave, and their masks, would be 70% of the memory; masks alone are 14%, and 25% where
    numbers are half as long. Eager draws other masks in bfloat16: there torch's own compilation is the witness."""
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (nn.Linear(WIDTH, WIDTH), nn.Dropout(0.3), nn.Tanh())]
    module = nn.Sequential(*layers).to(dtype)
    x = torch.randn(2048, WIDTH, dtype=dtype)
    other, asked = twin(module), backend(share, 20_000)
    run = torch.compile(lambda x: module(x).square().mean(), backend=asked, dynamic=False)
    how = "eager" if dtype is torch.float32 else "aot_eager"
    witness = torch.compile(lambda x: other(x).square().mean(), backend=how, dynamic=False)
    assert step(module, run, (x,)).same_bits(step(other, witness, (x,)))
    (plan,) = asked.plans
    assert plan.found is not None
    assert plan.found.fits
    assert measured(asked, module, run, (x,)) <= plan.found.budget
