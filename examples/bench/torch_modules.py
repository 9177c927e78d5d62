"""Modules as users write them: what the well-known networks of `torch_series.py` have not got.

Invariant: each is small, draws nothing by chance, and is given with what it reads and the loss that it is trained by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations


@dataclass(frozen=True)
class Subject:
    """`loss`: cross-entropy over `axis`, mse, or `own`: the module returns it."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    loss: str = "cross-entropy"
    axis: int = 1


class Told(nn.Module):
    """A forward pass in one expression over named parts."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.told = forward

    def forward(self, *given: Tensor) -> Any:
        return self.told(self, *given)


IMAGE = (2, 3, 16, 16)


def image() -> Tensor:
    return torch.randn(IMAGE)


def ids(batch: int = 2, length: int = 9, most: int = 32) -> Tensor:
    return torch.randint(0, most, (batch, length))


def recurrent(kind: type[nn.Module], **extra: Any) -> Subject:
    width = 32 if extra.get("bidirectional") else 16
    parts = {"wte": nn.Embedding(32, 12), "net": kind(12, 16, batch_first=True, **extra), "head": nn.Linear(width, 32)}
    return Subject(Told(lambda m, x: m.head(m.net(m.wte(x))[0]), **parts), (ids(),), axis=2)


def cells(kind: type[nn.Module]) -> Subject:
    """A cell called in a loop of known length."""

    def forward(m: Any, x: Tensor) -> Tensor:
        state = m.head.weight.new_zeros(x.shape[0], 16)
        state = (state, state) if kind is nn.LSTMCell else state
        for step in range(x.shape[1]):
            state = m.cell(m.wte(x[:, step]), state)
        return m.head(state[0] if kind is nn.LSTMCell else state)

    return Subject(Told(forward, wte=nn.Embedding(32, 12), cell=kind(12, 16), head=nn.Linear(16, 5)), (ids(),))


def vae() -> Subject:
    """The noise is given, as a draw is no two libraries' own; the loss is its own."""

    def forward(m: Any, x: Tensor, noise: Tensor) -> Tensor:
        mean, log = m.encode(x).chunk(2, -1)
        y = m.decode(mean + noise * torch.exp(0.5 * log))
        fit = functional.binary_cross_entropy_with_logits(y, torch.sigmoid(x), reduction="sum")
        return (fit - 0.5 * torch.sum(1 + log - mean.pow(2) - log.exp())) / x.shape[0]

    encode = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 8))
    decode = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))
    return Subject(Told(forward, encode=encode, decode=decode), (torch.randn(4, 20), torch.randn(4, 4)), "own")


def generator() -> Subject:
    layers: list[nn.Module] = []
    for inside, outside in ((8, 16), (16, 8)):
        layers += [nn.ConvTranspose2d(inside, outside, 4, 2, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(True)]
    net = nn.Sequential(*layers, nn.ConvTranspose2d(8, 3, 3, 2, 1, output_padding=1), nn.Tanh())
    return Subject(net, (torch.randn(2, 8, 4, 4),), "mse")


def discriminator() -> Subject:
    norm = parametrizations.spectral_norm
    layers = [norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2), norm(nn.Conv2d(8, 8, 4, 2, 1)), nn.LeakyReLU(0.2)]
    net = nn.Sequential(*layers, nn.Flatten(), norm(nn.Linear(128, 1)))
    return Subject(Told(lambda m, x: functional.softplus(-m.net(x)).mean(), net=net), (image(),), "own")


def autoencoder() -> Subject:
    down = [nn.Conv2d(3, 8, 3, 2, 1), nn.ELU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ELU()]
    up = [nn.Upsample(scale_factor=2), nn.Conv2d(8, 8, 3, 1, 1), nn.Softplus(), nn.ConvTranspose2d(8, 3, 2, 2)]
    return Subject(nn.Sequential(*down, *up), (image(),), "mse")


def siamese() -> Subject:
    def forward(m: Any, a: Tensor, b: Tensor) -> Tensor:
        return m.head(torch.abs(m.net(a) - m.net(b)))

    net = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 8))
    return Subject(Told(forward, net=net, head=nn.Linear(8, 2)), (torch.randn(4, 12), torch.randn(4, 12)))


def triplet() -> Subject:
    def forward(m: Any, a: Tensor, p: Tensor, n: Tensor) -> Tensor:
        return functional.triplet_margin_loss(*(functional.normalize(m.net(x)) for x in (a, p, n)))

    return Subject(Told(forward, net=nn.Linear(12, 8)), tuple(torch.randn(4, 12) for _ in range(3)), "own")


def contrastive() -> Subject:
    """CLIP's loss, with a learnt temperature."""

    def forward(m: Any, a: Tensor, b: Tensor) -> Tensor:
        a, b = functional.normalize(m.left(a), dim=-1), functional.normalize(m.right(b), dim=-1)
        logits, own = a @ b.T * m.scale.exp(), torch.arange(a.shape[0])
        return (functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)) / 2

    parts = {"left": nn.Linear(12, 8), "right": nn.Linear(10, 8), "scale": nn.Parameter(torch.tensor(1.5))}
    return Subject(Told(forward, **parts), (torch.randn(4, 12), torch.randn(4, 10)), "own")


def losses() -> Subject:
    """Every loss of nn.functional that is differentiable, added up."""

    def forward(m: Any, x: Tensor, y: Tensor) -> Tensor:
        z, one = m.net(x), torch.sigmoid(m.net(x))
        labels, target = torch.arange(4) % 6, torch.sigmoid(y)
        sign = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=x.dtype)
        parts = [
            functional.l1_loss(z, y),
            functional.smooth_l1_loss(z, y),
            functional.huber_loss(z, y, delta=0.7),
            functional.binary_cross_entropy(one, target),
            functional.binary_cross_entropy_with_logits(z, target, pos_weight=torch.full((6,), 2.0, dtype=x.dtype)),
            functional.kl_div(functional.log_softmax(z, -1), functional.softmax(y, -1), reduction="batchmean"),
            functional.nll_loss(functional.log_softmax(z, 1), labels, weight=torch.linspace(0.5, 1, 6, dtype=x.dtype)),
            0.9 * functional.cross_entropy(z, labels) - 0.1 * functional.log_softmax(z, 1).mean(),
            functional.poisson_nll_loss(z, target),
            functional.cosine_embedding_loss(z, y, sign),
            functional.margin_ranking_loss(z[:, 0], z[:, 1], sign, margin=0.3),
            functional.hinge_embedding_loss(z[:, 0], sign),
            functional.soft_margin_loss(z[:, 0], sign),
            functional.multi_margin_loss(z, labels),
            functional.multilabel_soft_margin_loss(z, (target > 0.5).to(x.dtype)),
        ]
        return torch.stack(parts).sum()

    return Subject(Told(forward, net=nn.Linear(8, 6)), (torch.randn(4, 8), torch.randn(4, 6)), "own")


def smoothed() -> Subject:
    def forward(m: Any, x: Tensor) -> Tensor:
        return functional.cross_entropy(m.net(x), torch.arange(4), label_smoothing=0.1)

    return Subject(Told(forward, net=nn.Linear(8, 6)), (torch.randn(4, 8),), "own")


def several() -> Subject:
    """Two outputs besides the one that is trained; one of them is whole numbers."""

    def forward(m: Any, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = torch.tanh(m.first(x)) * mask
        logits = m.second(hidden)
        return logits, hidden, logits.argmax(-1)

    net = Told(forward, first=nn.Linear(8, 8), second=nn.Linear(8, 5))
    return Subject(net, (torch.randn(4, 8), (torch.rand(4, 8) > 0.3).float()))


def normed() -> Subject:
    weight = parametrizations.weight_norm
    net = nn.Sequential(weight(nn.Conv1d(3, 8, 3, dilation=2)), nn.GLU(1), weight(nn.Conv1d(4, 6, 3)), nn.Flatten())
    return Subject(nn.Sequential(net, nn.Linear(60, 5)), (torch.randn(2, 3, 16),))


def orthogonal() -> Subject:
    net = nn.Sequential(parametrizations.orthogonal(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 4))
    return Subject(net, (torch.randn(4, 6),))


def indexed() -> Subject:
    """Slices, steps, masks, lists and tensors as indices, and writes at them."""

    def forward(m: Any, x: Tensor) -> Tensor:
        y = m.net(x)
        rows = torch.tensor([2, 0, 2])
        z = y[rows] + y[[1, 3, 1]] + y[-3:] + y[1:, 1:].flip(1).roll(2, 1).mean(1, keepdim=True)
        z = z + torch.where(y[:3] > 0, y[:3], -0.1 * y[:3]) + y.T[rows][:, :3].sum(0)[:, None]
        z = z + y[rows, torch.tensor([1, 4, 7])][:, None] + torch.take_along_dim(y, rows[None], 1).sum()
        out = y.new_zeros(5, 8)
        out[:3] = z
        out[3:, ::2] += y[:2, ::2]
        return out.index_add(0, torch.tensor([0, 4]), y[:2]).scatter_add(0, torch.ones(1, 8, dtype=torch.int64), y[:1])

    return Subject(Told(forward, net=nn.Linear(6, 8)), (torch.randn(4, 6),), "mse")


def masked() -> Subject:
    """Padding masks: masked_fill, masked mean, a causal mask of tril."""

    def forward(m: Any, x: Tensor, mask: Tensor) -> Tensor:
        y = m.wte(x)
        scores = (m.q(y) @ m.k(y).transpose(1, 2)) / 4
        scores = scores.masked_fill(~mask[:, None, :].bool(), float("-inf"))
        scores = scores.masked_fill(torch.tril(torch.ones(9, 9)) == 0, torch.finfo(torch.float32).min)
        y = scores.softmax(-1) @ y
        return m.head((y * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1))

    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    parts = {"wte": nn.Embedding(32, 16, padding_idx=0), "q": nn.Linear(16, 16), "k": nn.Linear(16, 16)}
    return Subject(Told(forward, **parts, head=nn.Linear(16, 4)), (ids(), mask))


def einsums() -> Subject:
    def forward(m: Any, x: Tensor) -> Tensor:
        a = torch.einsum("bij,hjk->bhik", x, m.w)
        b = torch.einsum("bhik,bhjk->bhij", a, a).softmax(-1)
        c = torch.einsum("bhij,bhjk->bihk", b, a).flatten(2)
        d = torch.einsum("...d,d->...", c, m.v) + torch.einsum("bii->b", b[:, 0])[:, None]
        return d + torch.einsum("bi,bj->bij", d, d).sum(-1) + torch.einsum("bij->", x) * m.v.mean()

    net = Told(forward, w=nn.Parameter(torch.randn(2, 6, 4) * 0.3), v=nn.Parameter(torch.randn(8) * 0.3))
    return Subject(net, (torch.randn(3, 5, 6),))


def resized(mode: str, **extra: Any) -> Subject:
    def forward(m: Any, x: Tensor) -> Tensor:
        y = functional.interpolate(m.conv(x), size=(11, 9), mode=mode, **extra)
        return functional.interpolate(y, scale_factor=1.5, mode=mode, **extra)

    return Subject(Told(forward, conv=nn.Conv2d(3, 4, 3)), (torch.randn(2, 3, 9, 8),), "mse")


def resized_down() -> Subject:
    def forward(m: Any, x: Tensor) -> Tensor:
        return functional.interpolate(m.conv(x), scale_factor=0.5, mode="bilinear", antialias=True)

    return Subject(Told(forward, conv=nn.Conv2d(3, 4, 3)), (torch.randn(2, 3, 10, 10),), "mse")


def resized_line() -> Subject:
    def forward(m: Any, x: Tensor) -> Tensor:
        return functional.interpolate(m.conv(x), scale_factor=2, mode="linear", align_corners=False)

    return Subject(Told(forward, conv=nn.Conv1d(3, 4, 3)), (torch.randn(2, 3, 10),), "mse")


def volumes() -> Subject:
    layers = [nn.Conv3d(2, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.PReLU(4), nn.MaxPool3d(2)]
    net = nn.Sequential(*layers, nn.Upsample(scale_factor=2, mode="trilinear"), nn.ConvTranspose3d(4, 3, 2, 2))
    return Subject(net, (torch.randn(2, 2, 4, 4, 4),))


def norms() -> Subject:
    layers = [nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8)]
    layers += [nn.Hardswish(), nn.LocalResponseNorm(3), nn.Conv2d(8, 8, 3, groups=4), nn.InstanceNorm2d(8, affine=True)]
    return Subject(nn.Sequential(*layers, nn.Flatten(), nn.LayerNorm(800), nn.Linear(800, 5)), (image(),))


def batch_norms() -> Subject:
    layers = [nn.Conv1d(3, 6, 3), nn.BatchNorm1d(6), nn.ReLU6(), nn.Flatten(), nn.Linear(60, 8), nn.BatchNorm1d(8)]
    return Subject(nn.Sequential(*layers, nn.CELU(), nn.Linear(8, 4)), (torch.randn(4, 3, 12),))


def fixed_norms() -> Subject:
    """BatchNorm without scale, and without statistics."""
    layers = [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, affine=False), nn.ReLU(), nn.Conv2d(6, 6, 3)]
    layers += [nn.BatchNorm2d(6, track_running_stats=False), nn.ReLU(), nn.Flatten(), nn.Linear(864, 4)]
    return Subject(nn.Sequential(*layers), (image(),))


def activations() -> Subject:
    kinds = (nn.ELU, nn.SELU, nn.CELU, nn.Mish, nn.Softsign, nn.Tanhshrink, nn.LogSigmoid, nn.Hardtanh, nn.Hardsigmoid)
    kinds += (nn.Softshrink, nn.Hardshrink, nn.SiLU, nn.Softmin, nn.GELU, nn.PReLU)
    layers: list[nn.Module] = []
    for kind in kinds:
        layers += [nn.Linear(12, 12), kind(dim=-1) if kind is nn.Softmin else kind()]
    return Subject(nn.Sequential(*layers, nn.GELU("tanh"), nn.Linear(12, 4)), (torch.randn(4, 12),))


def likelihood() -> Subject:
    """Logarithms of a softmax out, as in PyTorch's own examples; cross-entropy takes them as it takes logits."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(16, 5))
    return Subject(nn.Sequential(net, nn.LogSoftmax(1)), (image(),))


def pools() -> Subject:
    layers = [nn.Conv2d(3, 6, 3), nn.MaxPool2d(3, 2, 1, dilation=2), nn.AvgPool2d(2, 1, 1, count_include_pad=False)]
    layers += [nn.ReflectionPad2d(1), nn.LPPool2d(2, 2), nn.ReplicationPad2d(1), nn.AvgPool2d(3, 2, ceil_mode=True)]
    layers += [nn.ZeroPad2d((1, 0, 2, 1)), nn.Conv2d(6, 6, 2), nn.AdaptiveAvgPool2d((2, 1))]
    return Subject(nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 4)), (torch.randn(2, 3, 20, 20),))


def shuffles() -> Subject:
    def forward(m: Any, x: Tensor) -> Tensor:
        y = functional.pixel_shuffle(m.conv(x), 2)
        y = functional.channel_shuffle(functional.pixel_unshuffle(y, 2), 2)
        y = functional.unfold(y, 3, stride=2).transpose(1, 2)
        return m.head(y.unflatten(-1, (8, 9)).mean(2).flatten(1))

    return Subject(Told(forward, conv=nn.Conv2d(3, 8, 3), head=nn.Linear(9 * 36, 4)), (image(),))


def sampled() -> Subject:
    """A spatial transformer: affine_grid and grid_sample."""

    def forward(m: Any, x: Tensor) -> Tensor:
        theta = m.place(x.flatten(1)).view(-1, 2, 3)
        return m.head(functional.grid_sample(x, functional.affine_grid(theta, x.shape, False), align_corners=False))

    return Subject(Told(forward, place=nn.Linear(768, 6), head=nn.Conv2d(3, 4, 3)), (image(),))


def encoder() -> Subject:
    layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True, norm_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Subject(
        Told(lambda m, x: m.head(m.net(m.wte(x))), wte=nn.Embedding(32, 16), net=net, head=nn.Linear(16, 32)),
        (ids(),),
        axis=2,
    )


def translator() -> Subject:
    """nn.Transformer whole, source and target in."""

    def forward(m: Any, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(7)
        return m.head(m.net(m.wte(source), m.wte(target), tgt_mask=mask))

    net = nn.Transformer(16, 4, 1, 1, 32, 0.0, batch_first=True)
    return Subject(Told(forward, wte=nn.Embedding(32, 16), net=net, head=nn.Linear(16, 32)), (ids(), ids(2, 7)), axis=2)


def attention() -> Subject:
    """Heads of nn.MultiheadAttention over keys of another width, with a padding mask."""

    def forward(m: Any, x: Tensor, y: Tensor, absent: Tensor) -> Tensor:
        return m.head(m.net(x, y, y, key_padding_mask=absent > 0, need_weights=False)[0])

    net = nn.MultiheadAttention(16, 4, kdim=12, vdim=12, batch_first=True, add_bias_kv=True)
    absent = torch.zeros(2, 7)
    absent[1, 5:] = 1
    return Subject(
        Told(forward, net=net, head=nn.Linear(16, 4)), (torch.randn(2, 5, 16), torch.randn(2, 7, 12), absent), "mse"
    )


def bag() -> Subject:
    net = Told(lambda m, x: m.head(m.bag(x)), bag=nn.EmbeddingBag(32, 8, mode="mean"), head=nn.Linear(8, 4))
    return Subject(net, (ids(),))


def recommender() -> Subject:
    """Users, items and features in, one logit out, its loss its own."""

    def forward(m: Any, user: Tensor, item: Tensor, features: Tensor, clicked: Tensor) -> Tensor:
        u, i = m.users(user), m.items(item)
        both = torch.cat((u, i, u * i, m.dense(features)), 1)
        score = m.head(both).squeeze(1) + (u * i).sum(1) + m.bias
        return functional.binary_cross_entropy_with_logits(score, clicked)

    parts = {
        "users": nn.Embedding(20, 8),
        "items": nn.Embedding(30, 8),
        "dense": nn.Linear(5, 8),
        "head": nn.Linear(32, 1),
    }
    inputs = (torch.randint(0, 20, (6,)), torch.randint(0, 30, (6,)), torch.randn(6, 5), (torch.rand(6) > 0.5).float())
    return Subject(Told(forward, **parts, bias=nn.Parameter(torch.zeros(1))), inputs, "own")


def graphs() -> Subject:
    """A graph convolution: messages along edges, added up at nodes."""

    def forward(m: Any, x: Tensor, edges: Tensor) -> Tensor:
        for layer in (m.first, m.second):
            y = layer(x)
            x = torch.relu(torch.zeros_like(y).index_add(0, edges[1], y[edges[0]]) + y)
        return m.head(x)

    parts = {"first": nn.Linear(6, 8), "second": nn.Linear(8, 8), "head": nn.Linear(8, 3)}
    return Subject(Told(forward, **parts), (torch.randn(10, 6), torch.randint(0, 10, (2, 24))))


def complexes() -> Subject:
    """FNet mixes by Fourier transforms."""
    parts = {"wte": nn.Embedding(32, 16), "norm": nn.LayerNorm(16), "head": nn.Linear(16, 4)}
    return Subject(Told(lambda m, x: m.head(m.norm(torch.fft.fft2(m.wte(x)).real).mean(1)), **parts), (ids(2, 8),))


def selective() -> Subject:
    """A Mamba block, its recurrence a loop of known length."""

    def forward(m: Any, x: Tensor) -> Tensor:
        y, gate = m.inner(m.wte(x)).chunk(2, -1)
        y = functional.silu(m.conv(y.transpose(1, 2))[..., : y.shape[1]].transpose(1, 2))
        delta, b, c = m.by_input(y).split([16, 4, 4], -1)
        delta = functional.softplus(delta)
        decay = torch.exp(delta[..., None] * -torch.exp(m.log))
        given = (delta * y)[..., None] * b[:, :, None, :]
        state, found = torch.zeros(y.shape[0], 16, 4), []
        for step in range(y.shape[1]):
            state = decay[:, step] * state + given[:, step]
            found.append((state * c[:, step, None, :]).sum(-1))
        return m.head((torch.stack(found, 1) + y * m.skip) * functional.silu(gate))

    parts: dict[str, Any] = {"wte": nn.Embedding(32, 12), "inner": nn.Linear(12, 32), "head": nn.Linear(16, 32)}
    parts |= {"conv": nn.Conv1d(16, 16, 3, padding=2, groups=16), "by_input": nn.Linear(16, 24)}
    parts |= {"log": nn.Parameter(torch.rand(16, 4)), "skip": nn.Parameter(torch.ones(16))}
    return Subject(Told(forward, **parts), (ids(),), axis=2)


def experts() -> Subject:
    """A mixture of experts, all taken and weighed; and by the two best."""

    def forward(m: Any, x: Tensor) -> Tensor:
        gates = m.gate(x).softmax(-1)
        every = torch.stack([expert(x) for expert in m.experts], 1)
        best, which = gates.topk(2)
        picked = every.gather(1, which[..., None].expand(-1, -1, 8))
        return m.head(
            (picked * (best / best.sum(-1, keepdim=True))[..., None]).sum(1) + (gates[..., None] * every).mean(1)
        )

    layers = nn.ModuleList(nn.Linear(6, 8) for _ in range(4))
    return Subject(Told(forward, gate=nn.Linear(6, 4), experts=layers, head=nn.Linear(8, 3)), (torch.randn(5, 6),))


def straight() -> Subject:
    """Vectors quantized with a straight-through gradient, as in a VQ-VAE."""

    def forward(m: Any, x: Tensor) -> Tensor:
        z = m.encode(x)
        nearest = ((z[:, None] - m.book.weight) ** 2).sum(-1).argmin(1)
        q = m.book(nearest)
        taken = z + (q - z).detach()
        commit = functional.mse_loss(q, z.detach()) + 0.25 * functional.mse_loss(q.detach(), z)
        return functional.mse_loss(m.decode(taken), x) + commit

    parts = {"encode": nn.Linear(10, 4), "book": nn.Embedding(6, 4), "decode": nn.Linear(4, 10)}
    return Subject(Told(forward, **parts), (torch.randn(5, 10),), "own")


def frozen() -> Subject:
    """A part that is not trained: requires_grad is False."""
    body = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).requires_grad_(False)
    return Subject(nn.Sequential(body, nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)), (torch.randn(4, 8),))


def detached() -> Subject:
    """One branch is cut off, another is not."""

    def forward(m: Any, x: Tensor) -> Tensor:
        return m.head(m.first(x).detach() * 0.5 + m.second(x))

    return Subject(
        Told(forward, first=nn.Linear(6, 6), second=nn.Linear(6, 6), head=nn.Linear(6, 3)), (torch.randn(4, 6),)
    )


def arithmetic() -> Subject:
    """What else nn.functional and tensors can do with floats."""

    def forward(m: Any, x: Tensor) -> Tensor:
        y = m.net(x)
        z = y.abs() + 0.5
        found = [
            y.sin() + y.cos() * y.atan(),
            z.log1p() + z.rsqrt() + z.pow(1.7),
            y.clamp(-1, 0.4),
            z.log2() + z.log10(),
        ]
        found += [
            torch.addcmul(y, y, z, value=0.5),
            torch.lerp(y, z, 0.3),
            y.cumsum(1),
            y.erf() + y.expm1(),
        ]
        found += [torch.maximum(y, -z), torch.minimum(y, z), torch.atan2(y, z), y.sinh() / y.cosh()]
        found += [
            y - y.mean(1, keepdim=True),
            y / y.norm(dim=1, keepdim=True),
            y.std(1, keepdim=True) + y,
            y.var(0) + y,
        ]
        found += [
            torch.logsumexp(y, 1, keepdim=True) + y,
            y.amax(1, keepdim=True) + y,
            y.sort(1).values,
            y.prod(1)[:, None] + y,
        ]
        found += [torch.fmod(y, 0.7), torch.remainder(y, 0.7), y.round() + y.frac(), y.sign() * z, torch.nan_to_num(y)]
        found += [y.log_softmax(0)]
        found += [
            torch.outer(y[0], z[1])[:4] + y,
            torch.kron(y[:2, :2], z[:2, :4]),
            y.tril() + z.triu(),
        ]
        return torch.stack(found).tanh().mean(0)

    return Subject(Told(forward, net=nn.Linear(6, 8)), (torch.randn(4, 6),), "mse")


MODULES: dict[str, Callable[[], Subject]] = {
    "lstm": lambda: recurrent(nn.LSTM, num_layers=2),
    "gru": lambda: recurrent(nn.GRU),
    "rnn": lambda: recurrent(nn.RNN),
    "bilstm": lambda: recurrent(nn.LSTM, bidirectional=True),
    "lstm_cells": lambda: cells(nn.LSTMCell),
    "gru_cells": lambda: cells(nn.GRUCell),
    "vae": vae,
    "generator": generator,
    "discriminator": discriminator,
    "autoencoder": autoencoder,
    "siamese": siamese,
    "triplet": triplet,
    "contrastive": contrastive,
    "losses": losses,
    "smoothed": smoothed,
    "several": several,
    "weight_norm": normed,
    "orthogonal": orthogonal,
    "indexed": indexed,
    "masked": masked,
    "einsum": einsums,
    "nearest": lambda: resized("nearest"),
    "nearest-exact": lambda: resized("nearest-exact"),
    "bilinear": lambda: resized("bilinear", align_corners=False),
    "bilinear_corners": lambda: resized("bilinear", align_corners=True),
    "bicubic": lambda: resized("bicubic", align_corners=False),
    "area": lambda: resized("area"),
    "antialias": resized_down,
    "linear": resized_line,
    "volumes": volumes,
    "norms": norms,
    "batch_norms": batch_norms,
    "fixed_norms": fixed_norms,
    "activations": activations,
    "likelihood": likelihood,
    "pools": pools,
    "shuffles": shuffles,
    "sampled": sampled,
    "encoder": encoder,
    "translator": translator,
    "attention": attention,
    "bag": bag,
    "recommender": recommender,
    "graph": graphs,
    "complex": complexes,
    "mamba": selective,
    "experts": experts,
    "straight": straight,
    "frozen": frozen,
    "detached": detached,
    "arithmetic": arithmetic,
}
