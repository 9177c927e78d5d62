"""Models of torchvision, timm and transformers, small, with random weights: modules that return a loss, and inputs.

A maker fails with ImportError where its library is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import models
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

WORDS, LENGTH, CLASSES = 512, 64, 10
SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": LENGTH}
Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class OwnLoss(nn.Module):
    """A language model of transformers whose one argument gives its loss."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(input_ids=x, labels=x).loss
        return found


class Classifier(nn.Module):
    """Logits of a network, and their cross-entropy."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        found = self.model(x)
        return F.cross_entropy(getattr(found, "logits", found), y)


def language(family: str, model: str, batch: int = 8, length: int = LENGTH, **sizes: Any) -> Callable[[], Made]:
    def make() -> Made:
        import transformers

        config = getattr(transformers, f"{family}Config")(vocab_size=WORDS, **sizes)
        whole = OwnLoss(getattr(transformers, f"{family}{model}")(config))
        return whole, (torch.randint(0, WORDS, (batch, length)),)

    return make


def transformers_vit() -> Made:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(**SIZES, image_size=32, patch_size=4, num_labels=CLASSES)
    return Classifier(ViTForImageClassification(config)), models.images(8, 32)


def of_torchvision(name: str, batch: int, side: int) -> Callable[[], Made]:
    def make() -> Made:
        import torchvision

        model = getattr(torchvision.models, name)(num_classes=CLASSES)
        return Classifier(model), models.images(batch, side)

    return make


def timm_mixer() -> Made:
    import timm

    model = timm.create_model("mixer_s16_224", num_classes=CLASSES, img_size=96)
    return Classifier(model), models.images(16, 96)


UNSEEN: dict[str, Callable[[], Made]] = {
    "gpt2": language("GPT2", "LMHeadModel", **GPT2),  # with its dropout
    "bert": language("Bert", "ForMaskedLM", max_position_embeddings=LENGTH, **SIZES),  # with its dropout
    "llama": language("Llama", "ForCausalLM", num_key_value_heads=2, **SIZES),
    "qwen3": language("Qwen3", "ForCausalLM", num_key_value_heads=2, head_dim=16, **SIZES),
    "mamba": language("Mamba", "ForCausalLM", 4, 16, hidden_size=64, num_hidden_layers=2, state_size=8),
    "vit": transformers_vit,
    "mixer": timm_mixer,
    "resnet18": of_torchvision("resnet18", 16, 64),
    "resnet50": of_torchvision("resnet50", 16, 64),
    "convnext": of_torchvision("convnext_tiny", 8, 64),
    "unet": lambda: (models.UNet(16), (torch.randn(4, 3, 64, 64), torch.randint(0, 2, (4, 64, 64)))),
}
