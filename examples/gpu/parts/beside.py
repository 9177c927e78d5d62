"""PyTorch beside it, on the same networks: eager, and checkpointed by block.

Invariant: a step is forward, loss and backward, gradients made anew; memory is PyTorch's own count.
Not run on a machine without a GPU.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from examples.gpu.parts.models import Bench, Model

LIMIT = 16_000_000_000
DEVICE = "cuda"


def pytorch(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """Eager and checkpointed at the usual batch, then the largest of each within the limit."""
    if bench.device != "cuda":
        yield {"left_out": "PyTorch's figures are of a GPU"}
        return
    torch = prepared()
    batch = Model(bench, name).usual_batch
    for how in ("eager", "checkpoint"):
        network, made = networks()[name](torch)
        if how == "checkpoint":
            checkpointed(torch, network)
        network = network.cuda().train()
        take_step = functools.partial(step, torch, network, made(torch, batch))
        yield {how: {"batch": batch, **timed(torch, take_step, bench.seconds)}}
        del take_step
        yield {f"{how}, largest": largest(torch, network, made, batch)}
        del network


def prepared() -> Any:
    import torch

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True  # as onnxruntime does
    torch.backends.cudnn.allow_tf32 = True
    return torch


def step(torch: Any, network: Any, given: dict[str, Any]) -> None:
    network.zero_grad(set_to_none=True)
    loss_of(torch, network(given["input"]), given["labels"]).backward()


def loss_of(torch: Any, logits: Any, labels: Any) -> Any:
    logits = getattr(logits, "logits", logits)
    if logits.dim() == 4:
        logits = logits.permute(0, 2, 3, 1)
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def timed(torch: Any, take_step: Callable[[], None], seconds: float) -> dict[str, Any]:
    for _ in range(3):
        take_step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begun = time.perf_counter()
        take_step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    reserved, stats = torch.cuda.max_memory_reserved(), torch.cuda.memory_stats()
    return {
        "ms": round(1e3 * statistics.median(times), 4),
        "allocated": torch.cuda.max_memory_allocated(),
        "requested": stats.get("requested_bytes.all.peak"),
        "reserved": reserved,
    }


def largest(torch: Any, network: Any, made: Callable[..., dict[str, Any]], batch: int) -> dict[str, Any]:
    """The largest batch that runs where PyTorch may hold no more than the limit."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, LIMIT / total))
    low, high = 0, 4 * batch
    while runs(torch, network, made, high):
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if runs(torch, network, made, middle) else (low, middle)
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {"batch": low, "fails_at": high}


def runs(torch: Any, network: Any, made: Callable[..., dict[str, Any]], batch: int) -> bool:
    torch.cuda.empty_cache()
    try:
        given = made(torch, batch)
        for _ in range(2):
            step(torch, network, given)
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError:
        network.zero_grad(set_to_none=True)
        return False
    return True


def checkpointed(torch: Any, network: Any) -> None:
    """Each block's inside is computed again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    again = functools.partial(checkpoint, use_reentrant=False)
    for module in network.modules():
        if type(module).__name__ in ("Bottleneck", "Block", "GPT2Block", "BertLayer"):
            module.forward = functools.partial(again, module.forward)


def networks() -> dict[str, Callable[[Any], Any]]:
    return {"gpt2": gpt2, "resnet50": resnet50, "unet": unet, "bert": bert}


def tokens(vocabulary: int, length: int) -> Callable[..., dict[str, Any]]:
    def made(torch: Any, batch: int) -> dict[str, Any]:
        drawn = torch.randint(vocabulary, (2, batch, length), device=DEVICE)
        return {"input": drawn[0], "labels": drawn[1]}

    return made


def gpt2(torch: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    return GPT2LMHeadModel(GPT2Config(attn_implementation="eager", **off)), tokens(50257, 512)


def bert(torch: Any) -> Any:
    from transformers import BertConfig, BertForMaskedLM

    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertForMaskedLM(BertConfig(attn_implementation="eager", **off)), tokens(30522, 128)


def resnet50(torch: Any) -> Any:
    import torchvision

    def made(torch: Any, batch: int) -> dict[str, Any]:
        image = torch.randn(batch, 3, 224, 224, device=DEVICE)
        return {"input": image, "labels": torch.randint(1000, (batch,), device=DEVICE)}

    return torchvision.models.resnet50(), made


def unet(torch: Any) -> Any:
    """As remat's zoo has it: two convolutions a level, up again by transposed ones."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, given: int, made: int) -> None:
            super().__init__()
            layers = [nn.Conv2d(given, made, 3, padding=1), nn.ReLU(), nn.Conv2d(made, made, 3, padding=1), nn.ReLU()]
            self.layers = nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    class Net(nn.Module):
        def __init__(self, width: int = 64, depth: int = 4, classes: int = 2) -> None:
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

    def made(torch: Any, batch: int) -> dict[str, Any]:
        image = torch.randn(batch, 3, 512, 512, device=DEVICE)
        return {"input": image, "labels": torch.randint(2, (batch, 512, 512), device=DEVICE)}

    return Net(), made
