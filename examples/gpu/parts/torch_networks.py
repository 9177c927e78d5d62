"""Two language models as people train them: bfloat16, fused attention; GPT-2 with dropout, a Llama with grouped heads.

Invariant: each step is loss(x, labels) of one module, so that its values are in the plan. Weights come from one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sizes:
    layers: int
    hidden: int
    heads: int
    groups: int  # of heads that share keys and values
    length: int
    vocabulary: int
    batch: int
    dropout: float = 0.0


SIZES = {  # as they are, and small, for a CPU
    "llama": (Sizes(16, 2048, 32, 8, 1024, 32_000, 4), Sizes(2, 64, 4, 2, 32, 512, 2)),
    "gpt2": (Sizes(12, 768, 12, 12, 1024, 50_257, 8, 0.1), Sizes(2, 64, 4, 4, 32, 512, 2, 0.1)),
}


def network(torch: Any, name: str, small: bool, device: str, dropout: bool = True) -> tuple[Any, Any]:
    """A module in training mode, and what makes a batch of so many sequences."""
    sizes = SIZES[name][small]
    torch.manual_seed(0)
    made = _modules(torch, sizes, name == "llama", sizes.dropout if dropout else 0.0)

    def batch(count: int = sizes.batch) -> tuple[Any, Any]:
        drawn = torch.randint(sizes.vocabulary, (count, sizes.length + 1), device=device)
        return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()

    return made.to(device, torch.bfloat16).train(), batch


def _modules(torch: Any, sizes: Sizes, llama: bool, dropout: float) -> Any:
    nn, functional = torch.nn, torch.nn.functional
    hidden, size = sizes.hidden, sizes.hidden // sizes.heads

    def turned(x: Any) -> Any:
        """Rotary positions."""
        where = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)
        speed = 10_000.0 ** (-torch.arange(0, size, 2, device=x.device, dtype=torch.float32) / size)
        angle = where[:, None] * speed
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        one, other = x[..., ::2], x[..., 1::2]
        return torch.stack((one * cos - other * sin, one * sin + other * cos), -1).flatten(-2)

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            norm = nn.RMSNorm if llama else nn.LayerNorm
            self.before, self.between = norm(hidden), norm(hidden)
            self.query = nn.Linear(hidden, hidden, bias=not llama)
            self.held = nn.Linear(hidden, 2 * size * sizes.groups, bias=not llama)
            self.out = nn.Linear(hidden, hidden, bias=not llama)
            wide = int(8 / 3 * hidden) // 32 * 32 if llama else 4 * hidden
            self.up = nn.Linear(hidden, wide, bias=not llama)
            self.gate = nn.Linear(hidden, wide, bias=False) if llama else None
            self.down = nn.Linear(wide, hidden, bias=not llama)

        def attention(self, x: Any) -> Any:
            batch, length, _ = x.shape
            query = self.query(x).view(batch, length, sizes.heads, size).transpose(1, 2)
            held = self.held(x).view(batch, length, 2 * sizes.groups, size).transpose(1, 2)
            key, value = held.chunk(2, 1)
            if llama:
                query, key = turned(query), turned(key)
            shared = sizes.heads // sizes.groups
            if shared > 1:
                key, value = (one.repeat_interleave(shared, 1) for one in (key, value))
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=dropout)
            return self.out(seen.transpose(1, 2).reshape(batch, length, hidden))

        def forward(self, x: Any) -> Any:
            x = x + functional.dropout(self.attention(self.before(x)), dropout)
            inner = self.up(self.between(x))
            inner = functional.silu(self.gate(self.between(x))) * inner if self.gate else functional.gelu(inner)
            return x + functional.dropout(self.down(inner), dropout)

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(sizes.vocabulary, hidden)
            self.places = None if llama else nn.Embedding(sizes.length, hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(sizes.layers))
            self.last = (nn.RMSNorm if llama else nn.LayerNorm)(hidden)
            self.head = nn.Linear(hidden, sizes.vocabulary, bias=False)
            self.by_block = False  # whether each block is under torch.utils.checkpoint

        def forward(self, x: Any, labels: Any) -> Any:
            value = self.words(x)
            if self.places is not None:
                value = value + self.places(torch.arange(x.shape[1], device=x.device))
            value = functional.dropout(value, dropout)
            for block in self.blocks:
                if self.by_block:
                    value = torch.utils.checkpoint.checkpoint(block, value, use_reentrant=False)
                else:
                    value = block(value)
            logits = self.head(self.last(value)).float()
            return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return Model()
