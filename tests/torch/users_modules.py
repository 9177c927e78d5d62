"""Modules as users write them: everything that a joint graph may have in it besides plain ops.

`CASES`: name -> a function that gives a module and the arguments of some calls of it. Losses are taken outside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

Calls = list[tuple[Any, ...]]
WIDTH = 32


class Does(nn.Module):
    """A module of a function and the layers that it uses."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *arguments: Any) -> Any:
        return self.function(self, *arguments)


def rows(count: int = 16, width: int = WIDTH) -> torch.Tensor:
    return torch.randn(count, width)


def pictures(side: int = 16) -> torch.Tensor:
    return torch.randn(4, 3, side, side)


def mlp(*between: nn.Module) -> nn.Sequential:
    layers = [nn.Linear(WIDTH, WIDTH), *between, nn.Linear(WIDTH, WIDTH), *between, nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    return nn.Sequential(*layers)


def linear() -> nn.Linear:
    return nn.Linear(WIDTH, WIDTH)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.inner, self.head = nn.Embedding(50, WIDTH), linear(), nn.Linear(WIDTH, 50, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.inner(self.words(x))))


class Counting(nn.Module):
    """A buffer that the forward pass uses and then writes over."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp(nn.GELU())
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.exp(torch.tanh(self.inner(x) - self.mean)).sin()
        with torch.no_grad():
            self.mean.lerp_(h.mean(0), 0.1)
            self.steps += 1
        return h.cos()


class Remembering(nn.Module):
    """A buffer of the last means, each of which moves one place on."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = mlp(nn.GELU()), linear()
        self.register_buffer("last", torch.zeros(3, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.inner(x) * self.last[0].exp()
        self.last[1:] = self.last[:-1].clone()
        self.last[0] = h.detach().mean(0)
        return self.outer(h * self.last.sum(0).cos()).exp()


class Both(torch.autograd.Function):
    """Two results, of which a caller may use one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = x.exp()
        ctx.save_for_backward(x, y, first)
        return first, (x * y).sin()

    @staticmethod
    def backward(ctx: Any, of_first: torch.Tensor, of_second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y, first = ctx.saved_tensors
        inner = (x * y).cos() * of_second
        return of_first * first + inner * y, inner * x


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * gradient * x.exp()


@torch.library.custom_op("remat_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@scaled.register_fake
def _(x: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(x)


scaled.register_autograd(
    lambda ctx, gradient: (gradient * ctx.by, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
)


def breaks(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.first(x)
    torch._dynamo.graph_break()
    return self.second(h)


def in_place(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = F.relu_(self.inner(x)).clone()
    h[:, :4] = h[:, 4:8] * 2
    h.add_(1).mul_(x)
    return h


def assigned(self: Any, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), 2 * WIDTH)
    out[:, ::2] = self.inner(x)
    out[:, 1::2].copy_(x.exp())
    return torch.tanh(out)


def saves_products(context: Any, op: Any, *arguments: Any, **options: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


contexts = partial(create_selective_checkpoint_contexts, saves_products)


def selected(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = checkpoint(self.inner, x, use_reentrant=False, context_fn=contexts)
    return checkpoint(self.inner, h, use_reentrant=False)


def autocast(self: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return self.inner(x).float()


def stopped(self: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        target = self.inner(x).softmax(-1)
    return F.kl_div(self.inner(x.sin()).log_softmax(-1), target.detach(), reduction="batchmean")


def chosen(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    return torch.cond(x.sum() > 0, lambda h: (h.sin() * 2,), lambda h: (h.cos(),), (h,))[0].exp()


def gathered(self: Any, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    h = h.gather(1, places).scatter_add(1, places.flip(1), h.exp())
    return h.index_put((places[:, 0] % len(x),), h[:, :1].expand_as(h), accumulate=True).tanh()


def sorted_out(self: Any, x: torch.Tensor) -> torch.Tensor:
    h, place = self.inner(x).sort(-1)
    best, _ = h.exp().topk(4, -1)
    return h.cumsum(-1) * place + best.sum(-1, keepdim=True)


def spectrum(self: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.fft.irfft(torch.fft.rfft(self.inner(x)) * torch.fft.rfft(x.exp())).tanh()


def noisy(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    h = h + torch.randn_like(h) * h.exp()
    keep = torch.bernoulli(torch.full((len(x), 1), 0.8))
    return F.gumbel_softmax(h * keep, tau=0.7) * torch.rand(WIDTH)


def unpooled(self: Any, x: torch.Tensor) -> torch.Tensor:
    h, places = F.max_pool2d(self.inner(x).relu(), 2, return_indices=True)
    return F.interpolate(F.max_unpool2d(h.exp(), places, 2), scale_factor=2, mode="bilinear")


def attending(self: Any, x: torch.Tensor) -> torch.Tensor:
    q = self.inner(x).view(4, 4, 4, 8)
    return F.scaled_dot_product_attention(q, q.sin(), q.cos(), dropout_p=0.1, is_causal=True)


def named(self: Any, x: torch.Tensor) -> dict[str, Any]:
    h = self.first(x)
    g = self.second(h)
    return {"loss": (g * h).mean(), "states": (x, h, g), "none": None, "width": WIDTH}


def counted(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    return h * h.detach().abs().max().item()


def both(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = Both.apply(self.inner(x), x.cos())
    third, _ = Both.apply(first.tanh(), second)
    return third, second.sum()


def nested(self: Any, x: torch.Tensor) -> torch.Tensor:
    def inner(h: torch.Tensor) -> torch.Tensor:
        return F.dropout(h, 0.2) + checkpoint(self.inner, h.sin(), use_reentrant=False)

    return F.dropout(checkpoint(inner, x, use_reentrant=False), 0.2)


def watched(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    h.register_hook(lambda gradient: gradient * 0.5 + gradient.sin())
    return self.inner(h).exp()


def looped(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    with torch.no_grad():
        start = (torch.zeros((), dtype=torch.int64), h.detach())
        _, scale = torch._higher_order_ops.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h.sin()), start)
    return h * scale.exp()


def in_views(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x).exp().clone()
    halves = h.view(2, -1, WIDTH)
    halves[0].mul_(2)
    halves.select(2, 3).add_(x[:, 0].view(2, -1))
    h.t()[1].sigmoid_()
    return self.inner(h.clone())


def forms() -> dict[str, Callable[[], tuple[nn.Module, Calls]]]:
    def on_rows(function: Callable[..., Any], **layers: nn.Module) -> tuple[nn.Module, Calls]:
        return Does(function, **layers), [(rows(),), (rows(),)]

    ids = torch.arange(24).reshape(4, 6)
    convolution = nn.Conv2d(3, 8, 3, padding=1)
    return {
        "dropout": lambda: (mlp(nn.Dropout(0.3)), [(rows(),), (rows(),)]),
        "batch norm": lambda: (
            nn.Sequential(convolution, nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3)),
            [(pictures(),)] * 2,
        ),
        "batch norm, evaluated": lambda: (mlp(nn.BatchNorm1d(WIDTH)).eval(), [(rows(),)] * 2),
        "batch norm without averages": lambda: (mlp(nn.BatchNorm1d(WIDTH, track_running_stats=False)), [(rows(),)] * 2),
        "batch norm of cumulative averages": lambda: (mlp(nn.BatchNorm1d(WIDTH, momentum=None)), [(rows(),)] * 2),
        "tied weights": lambda: (Tied(), [(ids,), (ids + 1,)]),
        "one layer used twice": lambda: on_rows(lambda s, x: s.inner(s.inner(x).sin()).exp(), inner=linear()),
        "in place": lambda: on_rows(in_place, inner=linear()),
        "assigned": lambda: on_rows(assigned, inner=linear()),
        "several outputs": lambda: on_rows(named, first=mlp(), second=mlp(nn.GELU())),
        "an output that is a view": lambda: on_rows(lambda s, x: (s.inner(x), x[1:], s.inner(x).t()[2]), inner=mlp()),
        "outputs that share memory": lambda: on_rows(
            lambda s, x: (lambda h: (h, h.view(-1), h[:, 2]))(s.inner(x)), inner=mlp()
        ),
        "graph break": lambda: on_rows(breaks, first=mlp(nn.GELU()), second=mlp(nn.Dropout(0.2))),
        "checkpointed": lambda: on_rows(
            lambda s, x: checkpoint(s.inner, x, use_reentrant=False).exp(), inner=mlp(nn.GELU())
        ),
        "checkpointed dropout": lambda: on_rows(
            lambda s, x: checkpoint(s.inner, x, use_reentrant=False).exp(), inner=mlp(nn.Dropout(0.3))
        ),
        "selective checkpoint": lambda: on_rows(selected, inner=mlp(nn.GELU())),
        "autocast": lambda: on_rows(autocast, inner=mlp(nn.GELU())),
        "a buffer written over": lambda: (Counting(), [(rows(),)] * 3),
        "spectral norm": lambda: (parametrizations.spectral_norm(linear()), [(rows(),)] * 3),
        "weight norm": lambda: (parametrizations.weight_norm(linear()), [(rows(),)] * 2),
        "attention": lambda: (
            Does(lambda s, x: s.inner(x, x, x)[0], inner=nn.MultiheadAttention(WIDTH, 4, 0.1, batch_first=True)),
            [(torch.randn(2, 8, WIDTH),)] * 2,
        ),
        "attention with dropout": lambda: on_rows(attending, inner=mlp()),
        "transformer layer": lambda: (
            nn.TransformerEncoderLayer(WIDTH, 4, 64, 0.1, batch_first=True),
            [(torch.randn(2, 8, WIDTH),)] * 2,
        ),
        "lstm": lambda: (
            Does(lambda s, x: s.inner(x)[0], inner=nn.LSTM(8, 8, batch_first=True)),
            [(torch.randn(2, 5, 8),)] * 2,
        ),
        "gru": lambda: (Does(lambda s, x: s.inner(x)[0], inner=nn.GRU(8, 8, 2)), [(torch.randn(5, 2, 8),)] * 2),
        "embedding bag": lambda: (
            nn.Sequential(nn.EmbeddingBag(50, WIDTH, mode="mean"), nn.GELU(), linear()),
            [(ids,)] * 2,
        ),
        "group and instance norm": lambda: (
            nn.Sequential(
                convolution, nn.GroupNorm(2, 8), nn.SiLU(), nn.InstanceNorm2d(8), nn.ConvTranspose2d(8, 3, 2, 2)
            ),
            [(pictures(),)] * 2,
        ),
        "unpooled and resized": lambda: (Does(unpooled, inner=nn.Conv2d(3, 8, 3, padding=1)), [(pictures(),)] * 2),
        "gathered and scattered": lambda: (
            Does(gathered, inner=mlp()),
            [(rows(), torch.randint(0, WIDTH, (16, WIDTH)))] * 2,
        ),
        "sorted": lambda: on_rows(sorted_out, inner=mlp()),
        "einsum": lambda: on_rows(
            lambda s, x: torch.einsum("ab,cb,c->ab", s.inner(x), x.exp(), x[:, 0]).tanh(), inner=mlp()
        ),
        "own autograd function": lambda: on_rows(lambda s, x: Twice.apply(s.inner(x)) * x, inner=mlp()),
        "own op": lambda: on_rows(lambda s, x: scaled(s.inner(x).exp(), 0.5).sin(), inner=mlp()),
        "own autograd function of two results": lambda: on_rows(both, inner=mlp(nn.GELU())),
        "checkpoint in a checkpoint": lambda: on_rows(nested, inner=mlp(nn.Dropout(0.3))),
        "hook of a tensor": lambda: on_rows(watched, inner=mlp(nn.GELU())),
        "while loop": lambda: on_rows(looped, inner=mlp()),
        "in place of views": lambda: on_rows(in_views, inner=mlp()),
        "a buffer of the past": lambda: (Remembering(), [(rows(),)] * 3),
        "sparse gradient": lambda: (nn.Sequential(nn.Embedding(50, WIDTH, sparse=True), mlp()), [(ids,)] * 2),
        "cond": lambda: on_rows(chosen, inner=mlp()),
        "random": lambda: on_rows(noisy, inner=mlp(nn.Dropout(0.2))),
        "no gradient": lambda: on_rows(stopped, inner=mlp(nn.GELU())),
        "frozen": lambda: (
            mlp(nn.GELU()).apply(lambda m: m.requires_grad_(not isinstance(m, nn.Linear) or bool(m.weight[0, 0] > 0))),
            [(rows(),)] * 2,
        ),
        "input with gradient": lambda: (mlp(nn.GELU()), [(rows().requires_grad_(),)] * 2),
        "complex": lambda: on_rows(spectrum, inner=mlp()),
        "double": lambda: (mlp(nn.Softplus()).double(), [(rows().double(),)] * 2),
        "value read back": lambda: on_rows(counted, inner=mlp(nn.GELU())),
        "unused": lambda: on_rows(lambda s, x: s.inner(x).exp(), inner=mlp(), other=linear()),
        "other sizes": lambda: (mlp(nn.GELU(), nn.Dropout(0.1)), [(rows(16),), (rows(24),), (rows(40),), (rows(8),)]),
        "nothing to plan": lambda: (nn.Flatten(), [(rows().requires_grad_(),)]),
    }


CASES = forms()
