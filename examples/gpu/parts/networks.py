"""The networks of `models.py` in PyTorch, as they are and small, each with what makes its batches.

Invariant: the shapes and the ops are those of the graphs that they stand beside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from examples.gpu.parts.models import Bench

Made = Callable[[int], dict[str, Any]]  # a batch of so many


def network(torch: Any, bench: Bench, name: str) -> tuple[Any, Made]:
    """The network in training mode, on the device."""
    made, batch = {"gpt2": gpt2, "resnet50": resnet50, "unet": unet, "bert": bert}[name](torch, bench)
    return made.to(bench.device).train(), batch


def tokens(torch: Any, bench: Bench, vocabulary: int, length: int) -> Made:
    def made(batch: int) -> dict[str, Any]:
        drawn = torch.randint(vocabulary, (2, batch, length), device=bench.device)
        return {"input": drawn[0], "labels": drawn[1]}

    return made


def images(torch: Any, bench: Bench, side: int, classes: int, each: bool) -> Made:
    """Pictures with a class for each of their points, or for all of them."""

    def made(batch: int) -> dict[str, Any]:
        points = (side, side) if each else ()
        labels = torch.randint(classes, (batch, *points), device=bench.device)
        return {"input": torch.randn(batch, 3, side, side, device=bench.device), "labels": labels}

    return made


def gpt2(torch: Any, bench: Bench) -> tuple[Any, Made]:
    from transformers import GPT2Config, GPT2LMHeadModel

    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    vocabulary, length = (64, 8) if bench.small else (50_257, 512)
    sizes = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 16} if bench.small else {}
    config = GPT2Config(vocab_size=vocabulary, attn_implementation="eager", **sizes, **off)
    return GPT2LMHeadModel(config), tokens(torch, bench, vocabulary, length)


def bert(torch: Any, bench: Bench) -> tuple[Any, Made]:
    from transformers import BertConfig, BertForMaskedLM

    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    vocabulary, length = (64, 8) if bench.small else (30_522, 128)
    sizes = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 128}
    sizes = sizes if bench.small else {}
    config = BertConfig(vocab_size=vocabulary, attn_implementation="eager", **sizes, **off)
    return BertForMaskedLM(config), tokens(torch, bench, vocabulary, length)


def resnet50(torch: Any, bench: Bench) -> tuple[Any, Made]:
    """As torchvision has it, which machines may lack."""
    nn = torch.nn
    depths, width, side, classes = ((1, 1), 8, 32, 10) if bench.small else ((3, 4, 6, 3), 64, 224, 1000)

    def normed(given: int, made: int, size: int, stride: int = 1) -> Any:
        conv = nn.Conv2d(given, made, size, stride, size // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(made))

    class Bottleneck(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, given: int, inner: int, stride: int) -> None:
            super().__init__()
            self.narrow, self.middle = normed(given, inner, 1), normed(inner, inner, 3, stride)
            self.wide, self.relu = normed(inner, 4 * inner, 1), nn.ReLU(inplace=True)
            self.beside = normed(given, 4 * inner, 1, stride) if given != 4 * inner or stride > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            made = self.relu(self.narrow(x))
            return self.relu(self.wide(self.relu(self.middle(made))) + self.beside(x))

    layers = [normed(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    given = width
    for level, depth in enumerate(depths):
        for place in range(depth):
            inner = width << level
            layers.append(Bottleneck(given, inner, 2 if level and not place else 1))
            given = 4 * inner
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, classes)]
    return nn.Sequential(*layers), images(torch, bench, side, classes, each=False)


def unet(torch: Any, bench: Bench) -> tuple[Any, Made]:
    """As remat's zoo has it: two convolutions a level, up again by transposed ones."""
    nn = torch.nn
    width, depth, side, classes = (4, 2, 8, 2) if bench.small else (64, 4, 512, 2)

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, given: int, made: int) -> None:
            super().__init__()
            layers = [nn.Conv2d(given, made, 3, padding=1), nn.ReLU(), nn.Conv2d(made, made, 3, padding=1), nn.ReLU()]
            self.layers = nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    class Net(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            widths = [width << level for level in range(depth + 1)]
            self.down = nn.ModuleList(Block(a, b) for a, b in zip([3, *widths], widths, strict=False))
            pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
            self.join = nn.ModuleList(Block(2 * b, b) for _, b in pairs)
            self.head = nn.Conv2d(width, classes, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for level, block in enumerate(self.down):
                x = block(nn.functional.max_pool2d(x, 2) if level else x)
                kept.append(x)
            kept.pop()
            for up, join in zip(self.up, self.join, strict=True):
                x = join(torch.cat([kept.pop(), up(x)], 1))
            return self.head(x)

    return Net(), images(torch, bench, side, classes, each=True)
