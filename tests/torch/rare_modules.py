"""Rare forms: compiled inside, tensors of a class of their own, hooks that update, ragged rows and others.

`RARE`: as `CASES` in `users_modules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

from tests.torch.users_modules import WIDTH, Calls, Does, linear, mlp, rows


class Clamped(torch.autograd.Function):
    """Writes into what it is given, and returns places besides, which have no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, low: float) -> tuple[torch.Tensor, torch.Tensor]:
        inside = x > low
        x.clamp_(min=low)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(inside)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inside)
        return x, inside

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (inside,) = ctx.saved_tensors
        gradient = gradients[0]
        return (None if gradient is None else gradient * inside if ctx.needs_input_grad[0] else None), None


class Running(nn.Module):
    """A buffer that is written twice in a pass, through a view and without gradients, and read between and after."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp(nn.GELU())
        self.register_buffer("seen", torch.ones(4, WIDTH))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.inner(x) * self.seen[0].clone()
        with torch.no_grad():
            self.seen[1:3].lerp_(h[:2], 0.3)
            self.seen[torch.tensor([0, 3])] = self.seen[1:3].exp().clamp(max=2)
        return h * self.seen.sum(0), self.seen[2].clone()


class Clipped(nn.Module):
    """Weights that the forward pass itself keeps small, and two layers that share them, one transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.inner.weight.clamp_(-0.1, 0.1)
        return F.linear(self.inner(x).tanh(), self.inner.weight.t())


class Unrolled(nn.Module):
    """A recurrent cell, step by step, whose states are cut off half way."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 8)
        self.gates = nn.GRUCell(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(len(x), 8)
        found = []
        for place in range(3):
            h, c = self.cell(x[:, 8 * place : 8 * place + 8], (h, c))
            if place == 1:
                h, c = h.detach(), c
            found.append(self.gates(h, c))
        return torch.cat(found, 1)


class Named(nn.Module):
    """Parameters in lists and dicts, of which some are not used or not trained, and a number as one."""

    def __init__(self) -> None:
        super().__init__()
        self.many = nn.ParameterDict({name: nn.Parameter(torch.randn(WIDTH)) for name in "abc"})
        self.all = nn.ParameterList([nn.Parameter(torch.randn(WIDTH, WIDTH) / 8) for _ in range(2)])
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.all[1].requires_grad_(False)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        h = F.gelu(x @ self.all[0] + self.many["a"]) @ self.all[1] * self.scale
        return {"h": h, "why": "words", "none": None, "count": 3, "pair": (h.sum(), self.many["c"])}


class Int8(nn.Module):
    """Weights kept as bytes with a learned scale."""

    bytes: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bytes", torch.randint(-127, 127, (WIDTH, WIDTH), dtype=torch.int8))
        self.scale = nn.Parameter(torch.full((WIDTH, 1), 0.01))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(F.silu(F.linear(x, self.bytes.float() * self.scale)), self.bytes * self.scale)


def compiled_inside(self: Any, x: torch.Tensor) -> torch.Tensor:
    inner = torch.compile(self.inner, backend="aot_eager")
    return inner(x).exp() + inner(x.cos())


@torch.compiler.disable
def left_out(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def disabled(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.inner(left_out(self.inner(x))).tanh()


def own_rules(self: Any, x: torch.Tensor) -> torch.Tensor:
    h, inside = Clamped.apply(self.inner(x).exp() - 1, 0.1)
    return (self.inner(h) * inside).sin()


def reentrant(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = checkpoint(self.inner, self.outer(x), use_reentrant=True)
    return checkpoint(lambda h, *, k: self.inner(h) * k, h, use_reentrant=False, preserve_rng_state=False, k=0.5)


def averages_in_a_checkpoint(self: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return checkpoint(self.inner, x, use_reentrant=False).float().exp()


def ensemble(self: Any, x: torch.Tensor) -> torch.Tensor:
    weights, buffers = stack_module_state(list(self.layers))
    found = vmap(lambda w, b, x: functional_call(self.layers[0], (w, b), (x,)), in_dims=(0, 0, None))(
        weights, buffers, x
    )
    return found.logsumexp(0)


def of_entries(self: Any, x: torch.Tensor) -> torch.Tensor:
    values = self.inner(x)[:, 0].exp()
    places = torch.stack([torch.arange(16), torch.arange(16).flip(0)])
    return torch.sparse.mm(torch.sparse_coo_tensor(places, values, (16, 16)), x).sin()


def by_rows(self: Any, x: torch.Tensor) -> torch.Tensor:
    kept = torch.eye(16).to_sparse_csr()
    return (kept @ self.inner(x)).exp()


def phases(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = torch.polar(self.inner(x).exp(), x)
    z = z.conj() * z.roll(1, 0)
    z.real.mul_(0.5)
    return torch.view_as_real(z).sum(-1), z.abs(), z.angle().cos(), z.imag


def reduced(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    place = torch.arange(16) % 5
    most = torch.zeros(5, WIDTH).scatter_reduce(0, place[:, None].expand(-1, WIDTH), h, "amax")
    h = h.index_put((place,), h.exp(), accumulate=True)
    return h.cummax(0).values + h.kthvalue(3, 1).values[:, None] + most.prod(0) + h.cumprod(1).clamp(-1, 1)


def ragged(self: Any, x: torch.Tensor) -> torch.Tensor:
    given = torch.nested.nested_tensor_from_jagged(self.inner(x), torch.tensor([0, 3, 9, 16]))
    return (given.sin() * given).values().exp()


def leaves(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    g = h.detach().requires_grad_()
    kept = [h.detach().mean()]
    kept.append(kept[0] + 1)
    return (g * 2).sum() * h.mean() + torch.stack(kept).sum()


def of_own_class(self: Any, x: torch.Tensor) -> torch.Tensor:
    from torch.testing._internal.two_tensor import TwoTensor

    both = TwoTensor(x, x.cos())
    return self.inner(both).exp()


def mixed(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x).half()
    h += 1
    return (h.double() @ h.double().t()).float().softmax(-1) @ h.float() + h.bfloat16()


def returned(self: Any, x: torch.Tensor) -> tuple[Any, ...]:
    h = self.inner(x.sin())
    x.detach().add_(1)
    return h, x[2:], self.inner[0].weight.view(-1)[3:], self.inner[0].bias


def updating() -> nn.Module:
    """Weights that are updated as soon as their gradient is there, with a scaled output and a kept gradient."""
    module = mlp(nn.GELU())

    def update(parameter: torch.Tensor) -> None:
        with torch.no_grad():
            parameter.add_(parameter.grad, alpha=-0.1)

    for parameter in module.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    module[0].register_forward_hook(lambda _, __, out: out * 0.5)
    module[2].register_full_backward_pre_hook(lambda _, gradients: tuple(g * 2 for g in gradients))
    return module


def lazy() -> nn.Module:
    module = nn.Sequential(nn.LazyLinear(WIDTH), nn.Mish(), nn.LazyBatchNorm1d(), nn.AlphaDropout(0.2), linear())
    module(rows())
    return module


def forms() -> dict[str, Callable[[], tuple[nn.Module, Calls]]]:
    def on_rows(function: Callable[..., Any], **layers: nn.Module) -> tuple[nn.Module, Calls]:
        return Does(function, **layers), [(rows(),), (rows(),)]

    return {
        "compiled inside": lambda: on_rows(compiled_inside, inner=mlp(nn.GELU())),
        "left out inside": lambda: on_rows(disabled, inner=mlp(nn.GELU())),
        "own rules, in place": lambda: on_rows(own_rules, inner=mlp()),
        "reentrant checkpoint": lambda: on_rows(reentrant, inner=mlp(nn.GELU()), outer=linear()),
        "averages in a checkpoint": lambda: on_rows(averages_in_a_checkpoint, inner=mlp(nn.BatchNorm1d(WIDTH))),
        "ensemble": lambda: on_rows(ensemble, layers=nn.ModuleList(mlp(nn.GELU()) for _ in range(3))),
        "sum of sparse gradients": lambda: (
            Does(lambda s, x: s.words(x).exp() * s.words(x + 1), words=nn.Embedding(25, WIDTH, sparse=True)),
            [(torch.arange(24).reshape(4, 6),)] * 2,
        ),
        "sparse of entries": lambda: on_rows(of_entries, inner=mlp()),
        "sparse by rows": lambda: on_rows(by_rows, inner=mlp()),
        "phases": lambda: on_rows(phases, inner=mlp()),
        "reduced by place": lambda: on_rows(reduced, inner=mlp(nn.Sigmoid())),
        "ragged rows": lambda: on_rows(ragged, inner=mlp(nn.GELU())),
        "leaves made inside": lambda: on_rows(leaves, inner=mlp()),
        "tensors of a class": lambda: on_rows(of_own_class, inner=mlp()),
        "mixed precisions": lambda: on_rows(mixed, inner=mlp(nn.GELU())),
        "inputs and weights returned": lambda: on_rows(returned, inner=mlp(nn.GELU())),
        "updated in the backward pass": lambda: (updating(), [(rows(),)] * 3),
        "lazy layers": lambda: (lazy(), [(rows(),)] * 2),
        "buffer written twice": lambda: (Running(), [(rows(),)] * 3),
        "weights clipped": lambda: (Clipped(), [(rows(),)] * 3),
        "unrolled cells": lambda: (Unrolled(), [(rows(),)] * 2),
        "named parameters": lambda: (Named(), [(rows(),)] * 2),
        "bytes as weights": lambda: (Int8(), [(rows(),)] * 2),
    }


RARE = forms()
