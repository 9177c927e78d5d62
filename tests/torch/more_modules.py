"""More modules as users write them: what is taken in and given out, what changes between steps, and higher-order ops.

`MORE`: name -> a function that gives a module and the arguments of some calls of it. Losses are taken outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.torch.users_modules import WIDTH, Calls, Does, linear, mlp, pictures, rows


@dataclass
class Found:
    """A result as a dataclass."""

    loss: torch.Tensor
    hidden: torch.Tensor | None = None


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Rounded(torch.autograd.Function):
    """Straight-through rounding, which writes into its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x.abs() < 1)
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (kept,) = ctx.saved_tensors
        return gradient.clone().mul_(kept)


class Symmetric(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).transpose(-1, -2)


class Averaged(nn.Module):
    """A network beside the moving average of its weights, which the step itself moves."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.slow = mlp(nn.GELU()), mlp(nn.GELU()).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            for own, other in zip(self.slow.parameters(), self.inner.parameters(), strict=True):
                own.lerp_(other, 0.1)
            target = self.slow(x)
        return F.smooth_l1_loss(self.inner(x), target) + self.inner(x).exp().mean()


class Queue(nn.Module):
    """Keys of past steps, as in MoCo: a buffer with a place that moves."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp(nn.GELU())
        self.register_buffer("keys", F.normalize(rows(24)))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = F.normalize(self.inner(x), dim=-1)
        found = torch.cat([(q * q.roll(1, 0)).sum(-1, keepdim=True), q @ self.keys.clone().t()], 1)
        with torch.no_grad():
            self.keys.index_copy_(0, (self.place + torch.arange(len(x))) % len(self.keys), q)
            self.place.add_(len(x)).remainder_(len(self.keys))
        return F.cross_entropy(found / 0.1, torch.zeros(len(x), dtype=torch.long))


def hooked() -> nn.Module:
    """Hooks before and after, on the way back, and of a weight."""
    module = mlp(nn.GELU())
    module[0].register_forward_pre_hook(lambda m, given: (given[0] * 2,))
    module[2].register_forward_hook(lambda m, given, made: made.tanh())
    module[2].weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    return module


def symmetric() -> nn.Module:
    module = nn.Sequential(linear(), nn.GELU(), parametrizations.orthogonal(linear()))
    parametrize.register_parametrization(module[0], "weight", Symmetric())
    return module


def frames(self: Any, x: torch.Tensor) -> torch.Tensor:
    """A bag of rows, their sums and a scatter."""
    h = self.inner(x)
    bag = F.embedding_bag(
        torch.arange(12), h, torch.tensor([0, 3, 3, 8]), mode="sum", per_sample_weights=x[:12, 0].exp()
    )
    most = torch.zeros(5, WIDTH).scatter_reduce(0, torch.arange(16)[:, None].expand(-1, WIDTH) % 5, h, "amax")
    return torch.cat([bag, most, torch.segment_reduce(h, "mean", lengths=torch.tensor([4, 4, 8]))])


def scanned(self: Any, x: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops.scan import scan

    _, found = scan(lambda s, h: ((s * 0.9 + h).tanh(), s.exp() * h), torch.zeros(WIDTH), self.inner(x))
    return found


def associated(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.inner(x)
    with torch.no_grad():
        scale = torch.cumprod(h.sigmoid(), 0)
    return torch.logcumsumexp(h, 0) * scale


def flexible(self: Any, x: torch.Tensor) -> torch.Tensor:
    """On a CPU its gradient is not known to torch, so it is a target here."""
    q = self.inner(x).view(1, 16, 2, 16).transpose(1, 2)
    known = q.detach()
    target = flex_attention(known, known.sin(), known, score_mod=lambda score, b, h, i, j: score - (i - j).abs() * 0.1)
    return (q.exp() - target).square()


def masked(self: Any, x: torch.Tensor) -> torch.Tensor:
    q = self.inner(x).view(2, 8, 4, 8).transpose(1, 2)
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    h = F.scaled_dot_product_attention(q, q.exp(), q.sin(), attn_mask=mask, scale=0.3)
    return h.masked_fill(~mask[:, :1], 0.0) + F.scaled_dot_product_attention(q, q, q, attn_mask=x[:8, :8] * mask)


def mixed(self: Any, x: torch.Tensor) -> torch.Tensor:
    """A part in full precision within autocast, as in Llama's norms."""
    with torch.autocast("cpu", torch.bfloat16):
        h = self.inner(x)
        with torch.autocast("cpu", enabled=False):
            h = h.float() * torch.rsqrt(h.float().square().mean(-1, keepdim=True) + 1e-6)
        return F.layer_norm(self.inner(h), (WIDTH,)).float()


def functional(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Weights that a step of its own has moved, as in MAML."""
    weights = {name: value * 0.9 + 0.01 for name, value in self.inner.named_parameters()}
    return torch.func.functional_call(self.inner, weights, (x,))


def per_sample(self: Any, x: torch.Tensor) -> torch.Tensor:
    """vmap over rows, and a Jacobian's product with a vector."""
    h = torch.vmap(lambda row: self.inner(row).exp() * row.sum())(x)
    return h + torch.func.jvp(torch.sin, (h,), (x,))[1]


def gradient_inside(self: Any, x: torch.Tensor) -> torch.Tensor:
    """A gradient that is part of the forward pass, as a physics-informed network has it."""
    return torch.func.vmap(torch.func.grad(lambda row: self.inner(row).square().sum()))(x)


def complexes(self: Any, x: torch.Tensor) -> torch.Tensor:
    turned = torch.view_as_complex(self.inner(x).view(len(x), -1, 2)) * torch.polar(torch.ones(16), x[0, :16])
    return torch.view_as_real(turned).flatten(1) + torch.fft.fft2(torch.complex(x, self.inner(x))).abs()


def solved(self: Any, x: torch.Tensor) -> torch.Tensor:
    a = self.inner(x)[:, :16] @ self.inner(x)[:, :16].t() + 16 * torch.eye(16)
    return torch.linalg.solve(a, x) + torch.linalg.cholesky(a) @ x + torch.linalg.eigh(a)[0][:, None] + a.logdet()


def grown(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Writes into views of what it returns, and into a list of rows."""
    h, out = self.inner(x), x.new_empty(len(x), 2, WIDTH)
    out[:, 0], out[:, 1] = h, h.flip(0)
    out[1::2, 1] += 1
    out.transpose(1, 2)[:, 3].zero_()
    rows_of = list(out.unbind(1))
    rows_of[0] = rows_of[0].index_fill(1, torch.tensor([2]), 0.5)
    return torch.stack(rows_of).masked_scatter(out.transpose(0, 1) > 1, x.repeat(2, 1, 1))


def chosen_by_data(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Rows that the data chooses, so that sizes depend on it."""
    h = self.inner(x)
    picked = h[x[:, 0] > 0]
    return picked.sum(0) + h[torch.nonzero(x[:, 1] > 0).squeeze(1)].exp().sum(0)


def logged(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.first(x)
    self.seen = float(h.detach().mean())  # a break, and a value kept in Python
    return self.second(h * (2 if self.seen > 100 else 1))


def remembered(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = checkpoint_sequential(self.inner, 3, x, use_reentrant=False)
    return checkpoint(lambda h: F.dropout(self.outer(h), 0.2).exp(), h, use_reentrant=True)


def dropped(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = F.dropout2d(self.inner(x), 0.3).relu()
    h = F.alpha_dropout(h, 0.2, training=True) + F.feature_alpha_dropout(h, 0.1, training=True)
    return F.rrelu(h, training=True) * torch.empty(4, 1, 1, 1).bernoulli_(0.9).div_(0.9)


def normed() -> nn.Module:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, affine=False), nn.Mish(), nn.Conv2d(8, 8, 3, groups=4)]
    layers += [nn.LocalResponseNorm(3), nn.PReLU(8), nn.RMSNorm([12, 12]), nn.PixelShuffle(2), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(3), nn.Flatten(), nn.Linear(18, 4))


def experts(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Two of four experts for each row."""
    weights, places = self.gate(x).softmax(-1).topk(2)
    out = torch.zeros_like(x)
    for place, expert in enumerate(self.layers):
        share = (weights * (places == place)).sum(-1, keepdim=True)
        out.add_(expert(x) * share)
    return out + F.one_hot(places, 4).float().mean() * weights.var()


def from_bytes(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Pictures as bytes, and a mask of them."""
    h = self.inner((x.float() / 255 - 0.5) / 0.2)
    return h.where((x[:, :1] & 1).bool(), h.sin()) + (x[:, :1] >> 3).to(h.dtype) * h.mean()


def losses(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Losses inside of what is compiled, among them one of time."""
    h = self.inner(x)
    paths = h.log_softmax(-1)[:, None].expand(-1, 4, -1)
    aligned = F.ctc_loss(paths, y[:4, None] % 7 + 1, torch.full((4,), 16), torch.ones(4, dtype=torch.long))
    near = F.triplet_margin_loss(h, h.roll(1, 0), h.roll(2, 0)) + F.cosine_embedding_loss(h, x, y.sign() * 2 - 1)
    return F.cross_entropy(h, y, label_smoothing=0.1, ignore_index=3) + near + F.huber_loss(h, x) + aligned


def with_words(self: Any, x: torch.Tensor, *, scale: float = 0.5, only: Any = None, **more: Any) -> Found:
    h = self.inner(x) * scale
    return Found(h.mean() + sum(more.values(), 0), h if only is None else None)


def unpacked(self: Any, x: torch.Tensor) -> tuple[Any, ...]:
    found, other = with_words(self, x, bias=x.mean()), with_words(self, x, scale=2.0, only="loss")
    return found.loss, found.hidden, other.loss.exp(), other.hidden


def sparse(self: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.sparse.mm(torch.eye(16).to_sparse(), self.inner(x)).exp()


def forms() -> dict[str, Callable[[], tuple[nn.Module, Calls]]]:
    def on_rows(function: Callable[..., Any], **layers: nn.Module) -> tuple[nn.Module, Calls]:
        return Does(function, **layers), [(rows(),), (rows(),)]

    convolution = nn.Conv2d(3, 8, 3, padding=1)
    return {
        "dropouts of channels": lambda: (Does(dropped, inner=convolution), [(pictures(),)] * 2),
        "a dataclass": lambda: on_rows(unpacked, inner=mlp()),
        "a named tuple": lambda: on_rows(lambda s, x: Pair(s.inner(x), x.exp()), inner=mlp()),
        "a list of dicts": lambda: on_rows(lambda s, x: [{"a": s.inner(x)}, {"b": [s.inner(x).sum(), 3]}], inner=mlp()),
        "the input itself": lambda: on_rows(lambda s, x: (x, s.inner(x), s.inner[0].weight), inner=mlp()),
        "the input written over": lambda: on_rows(lambda s, x: s.inner(x.mul_(0.5).add_(1)), inner=mlp()),
        "straight through": lambda: on_rows(lambda s, x: Rounded.apply(s.inner(x) * 3).sin(), inner=mlp()),
        "hooks": lambda: (hooked(), [(rows(),)] * 2),
        "parametrized": lambda: (symmetric(), [(rows(),)] * 2),
        "moving average": lambda: (Averaged(), [(rows(),)] * 3),
        "queue of keys": lambda: (Queue(), [(rows(),)] * 3),
        "bags and segments": lambda: on_rows(frames, inner=mlp()),
        "scan": lambda: on_rows(scanned, inner=mlp()),
        "cumulative": lambda: on_rows(associated, inner=mlp()),
        "flexible attention": lambda: on_rows(flexible, inner=mlp()),
        "masked attention": lambda: on_rows(masked, inner=mlp()),
        "precision within autocast": lambda: on_rows(mixed, inner=mlp(nn.SiLU())),
        "functional call": lambda: on_rows(functional, inner=mlp(nn.GELU())),
        "vmap and jvp": lambda: on_rows(per_sample, inner=mlp(nn.Softplus())),
        "a gradient inside": lambda: on_rows(gradient_inside, inner=mlp(nn.Softplus())),
        "complex numbers": lambda: on_rows(complexes, inner=mlp()),
        "solved": lambda: on_rows(solved, inner=mlp()),
        "grown in views": lambda: on_rows(grown, inner=mlp()),
        "sizes of the data": lambda: on_rows(chosen_by_data, inner=mlp()),
        "a value kept": lambda: on_rows(logged, first=mlp(), second=mlp(nn.GELU())),
        "both checkpoints": lambda: on_rows(remembered, inner=mlp(nn.Dropout(0.2)), outer=linear()),
        "norms and pools": lambda: (normed(), [(pictures(),)] * 2),
        "experts": lambda: on_rows(experts, gate=nn.Linear(WIDTH, 4), layers=nn.ModuleList(linear() for _ in range(4))),
        "bytes": lambda: (
            Does(from_bytes, inner=convolution),
            [(torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8),)] * 2,
        ),
        "losses": lambda: (Does(losses, inner=mlp()), [(rows(), torch.arange(16) % 9)] * 2),
        "sparse product": lambda: on_rows(sparse, inner=mlp()),
        "no rows": lambda: (
            Does(lambda s, x: s.inner(x).sum(0), inner=mlp(nn.GELU(), nn.Dropout(0.1))),
            [(rows(16),), (rows(0),), (rows(16),)],
        ),
        "one row": lambda: (mlp(nn.LayerNorm(WIDTH)), [(rows(1),), (rows(2),), (rows(1),)]),
        "half": lambda: (mlp(nn.GELU()).to(torch.bfloat16), [(rows().to(torch.bfloat16),)] * 2),
        "channels last": lambda: (
            nn.Sequential(convolution, nn.BatchNorm2d(8), nn.ReLU6(), nn.Dropout(0.2)).to(
                memory_format=torch.channels_last
            ),
            [(pictures().to(memory_format=torch.channels_last),)] * 2,
        ),
        "no parameters": lambda: (nn.Sequential(nn.Softplus(), nn.LogSoftmax(-1)), [(rows().requires_grad_(),)] * 2),
        "inputs of one memory": lambda: (
            Does(lambda s, x: s.inner(x[:8]) * s.inner(x[8:]).t().t() + x[4:12], inner=mlp()),
            [(rows().requires_grad_(),)] * 2,
        ),
        "positions": lambda: (
            Does(
                lambda s, x: s.inner(s.words(x) + s.places.weight[: x.shape[1]]).mean(1),
                inner=mlp(nn.GELU()),
                words=nn.Embedding(50, WIDTH, padding_idx=0),
                places=nn.Embedding(9, WIDTH),
            ),
            [(torch.arange(24).reshape(4, 6),), (torch.arange(16).reshape(4, 4),)],
        ),
    }


MORE = forms()
