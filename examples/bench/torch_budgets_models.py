"""Thirty modules of timm, transformers, diffusers and peft that nothing here was built against: small, random weights.

Invariant: each is in training mode, is given with its inputs, and returns its loss. What a family is trained by is its
own loss where it has one; otherwise cross-entropy of its classes, or the mean square of what it makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[nn.Module, tuple[Tensor, ...]]
CLASSES, WORDS, LENGTH = 10, 256, 48
MEANT = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 192}
SEEING = {**MEANT, "image_size": 32, "patch_size": 8}


class Classes(nn.Module):
    """Cross-entropy of a network's logits."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(self.net(x), y)


class Own(nn.Module):
    """The loss that a model gives when it is called by these names, or the mean square of its first result."""

    def __init__(self, net: nn.Module, *names: str) -> None:
        super().__init__()
        self.net, self.names = net, names

    def forward(self, *given: Tensor) -> Tensor:
        found = self.net(**dict(zip(self.names, given, strict=True)))
        loss = getattr(found, "loss", None)
        return found[0].square().mean() if loss is None else loss


def ids(batch: int = 4, length: int = LENGTH) -> Tensor:
    return torch.randint(1, WORDS, (batch, length))


def of_timm(name: str, side: int = 64, batch: int = 8, **sizes: Any) -> Callable[[], Made]:
    def make() -> Made:
        import timm

        net = timm.create_model(name, num_classes=CLASSES, **sizes)
        return Classes(net), (torch.randn(batch, 3, side, side), torch.randint(0, CLASSES, (batch,)))

    return make


def words(config: str, model: str, *names: str, **sizes: Any) -> Callable[[], Made]:
    """A language model of transformers, trained by what it reads."""

    def make() -> Made:
        import transformers

        net = getattr(transformers, model)(getattr(transformers, config)(vocab_size=WORDS, **sizes))
        x = ids()
        return Own(net, *(names or ("input_ids", "labels"))), (x,) * len(names or "xy")

    return make


def seen(config: str, model: str, batch: int = 8, labels: Callable[[], Tensor] | None = None, **sizes: Any) -> Any:
    """A model of transformers that sees pictures."""

    def make() -> Made:
        import transformers

        net = getattr(transformers, model)(getattr(transformers, config)(**sizes))
        pictures = torch.randn(batch, 3, sizes.get("image_size", 64), sizes.get("image_size", 64))
        if labels is None:
            return Own(net, "pixel_values"), (pictures,)
        return Own(net, "pixel_values", "labels"), (pictures, labels())

    return make


def heard() -> Made:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    front = {"conv_dim": (32, 32, 32), "conv_stride": (5, 4, 4), "conv_kernel": (10, 8, 4), "mask_time_prob": 0.0}
    asked = Wav2Vec2Config(vocab_size=32, num_conv_pos_embeddings=16, layerdrop=0.0, **front, **MEANT)
    return Own(Wav2Vec2ForCTC(asked), "input_values", "labels"), (torch.randn(2, 8000), torch.randint(1, 32, (2, 12)))


def forecast() -> Made:
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    asked = PatchTSTConfig(num_input_channels=4, context_length=96, prediction_length=24, d_model=64, ffn_dim=128)
    return Own(PatchTSTForPrediction(asked), "past_values", "future_values"), (
        torch.randn(8, 96, 4),
        torch.randn(8, 24, 4),
    )


def diffused(name: str, names: tuple[str, ...], given: Callable[[], tuple[Tensor, ...]], **sizes: Any) -> Any:
    def make() -> Made:
        import diffusers

        return Own(getattr(diffusers, name)(**sizes), *names), given()

    return make


def noised() -> tuple[Tensor, ...]:
    return torch.randn(2, 4, 16, 16), torch.tensor([3, 500])


def in_text() -> tuple[Tensor, ...]:
    return torch.randn(2, 4, 16, 16), torch.randn(2, 12, 32), torch.tensor([3, 500])


def in_packs() -> tuple[Tensor, ...]:
    """Flux sees pictures as rows, each with its place."""
    places = torch.zeros(64, 3), torch.zeros(12, 3)
    return torch.randn(2, 64, 16), torch.randn(2, 12, 32), torch.randn(2, 32), torch.tensor([0.1, 0.7]), *places


def tuned(config: str, made: Callable[[], Made], **asked: Any) -> Callable[[], Made]:
    """A model of transformers with an adapter of peft."""

    def make() -> Made:
        import peft

        module, given = made()
        module.net = peft.get_peft_model(module.net, getattr(peft, config)(**asked))  # type: ignore[arg-type]
        return module, given

    return make


MISTRAL = words("MistralConfig", "MistralForCausalLM", num_key_value_heads=2, use_cache=False, **MEANT)
ROBERTA = words("RobertaConfig", "RobertaForMaskedLM", max_position_embeddings=LENGTH + 2, pad_token_id=0, **MEANT)
PHI = words("PhiConfig", "PhiForCausalLM", use_cache=False, **MEANT)
BART = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "use_cache": False}
BART |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 192, "decoder_ffn_dim": 192}
SEGMENTS = {"hidden_sizes": [16, 32, 48, 64], "decoder_hidden_size": 32, "num_labels": 5, "image_size": 64}
MADE_AGAIN = {"decoder_hidden_size": 64, "decoder_num_hidden_layers": 2, "decoder_intermediate_size": 128}
UNET = {"sample_size": 16, "in_channels": 4, "out_channels": 4, "layers_per_block": 1, "norm_num_groups": 8}
DIT = {"num_attention_heads": 4, "attention_head_dim": 16, "in_channels": 4, "num_layers": 3, "sample_size": 16}
SD3 = {"sample_size": 16, "patch_size": 2, "in_channels": 4, "num_layers": 3, "attention_head_dim": 16}
SD3 |= {"num_attention_heads": 4, "joint_attention_dim": 32, "caption_projection_dim": 64, "pooled_projection_dim": 32}
FLUX = {"in_channels": 16, "num_layers": 2, "num_single_layers": 2, "attention_head_dim": 16, "num_attention_heads": 4}
FLUX |= {"joint_attention_dim": 32, "pooled_projection_dim": 32, "axes_dims_rope": (4, 6, 6)}
CODER = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
CODER |= {"block_out_channels": (16, 32), "norm_num_groups": 8}

MODELS: dict[str, Callable[[], Made]] = {
    "timm xcit": of_timm("xcit_nano_12_p16_224", 96, depth=4),
    "timm levit": of_timm("levit_128s", 96, img_size=96),
    "timm tiny_vit": of_timm("tiny_vit_5m_224", 96, depths=(1, 1, 2, 1)),
    "timm mobilevitv2": of_timm("mobilevitv2_050"),
    "timm fastvit": of_timm("fastvit_t8", layers=(1, 1, 2, 1)),
    "timm pvt_v2": of_timm("pvt_v2_b0", depths=(1, 1, 1, 1)),
    "timm efficientvit": of_timm("efficientvit_b0"),
    "timm mambaout": of_timm("mambaout_femto", depths=(1, 1, 2, 1)),
    "timm nf_regnet": of_timm("nf_regnet_b0"),
    "timm cait": of_timm("cait_xxs24_224", 64, depth=4, img_size=64),
    "albert": words("AlbertConfig", "AlbertForMaskedLM", embedding_size=32, **MEANT),
    "xlnet": words("XLNetConfig", "XLNetLMHeadModel", d_model=64, n_layer=3, n_head=4, d_inner=192),
    "bart": words("BartConfig", "BartForConditionalGeneration", **BART),
    "phi3": words("Phi3Config", "Phi3ForCausalLM", pad_token_id=0, use_cache=False, **MEANT),
    "bloom": words("BloomConfig", "BloomForCausalLM", hidden_size=64, n_layer=3, n_head=4, use_cache=False),
    "falcon": words("FalconConfig", "FalconForCausalLM", use_cache=False, **MEANT),
    "mamba2": words(
        "Mamba2Config",
        "Mamba2ForCausalLM",
        **{"hidden_size": 64, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 16, "state_size": 16},
        **{"n_groups": 1, "chunk_size": 16, "use_cache": False},
    ),
    "convbert": words("ConvBertConfig", "ConvBertForMaskedLM", embedding_size=32, head_ratio=2, **MEANT),
    "segformer": seen(
        "SegformerConfig",
        "SegformerForSemanticSegmentation",
        2,
        lambda: torch.randint(0, 5, (2, 64, 64)),
        depths=[1, 1, 1, 1],
        **SEGMENTS,
    ),
    "vit_mae": seen("ViTMAEConfig", "ViTMAEForPreTraining", decoder_num_attention_heads=4, **MADE_AGAIN, **SEEING),
    "wav2vec2": heard,
    "patchtst": forecast,
    "diffusers UNet2D": diffused(
        "UNet2DModel",
        ("sample", "timestep"),
        noised,
        block_out_channels=(16, 32),
        **UNET,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ),
    "diffusers AutoencoderKL": diffused("AutoencoderKL", ("sample",), lambda: (torch.randn(2, 3, 32, 32),), **CODER),
    "diffusers PixArt": diffused(
        "PixArtTransformer2DModel",
        ("hidden_states", "encoder_hidden_states", "timestep"),
        in_text,
        **DIT,
        out_channels=8,
        cross_attention_dim=64,
        caption_channels=32,
        use_additional_conditions=False,
    ),
    "diffusers Flux": diffused(
        "FluxTransformer2DModel",
        ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep", "img_ids", "txt_ids"),
        in_packs,
        **FLUX,
    ),
    "peft DoRA": tuned("LoraConfig", MISTRAL, r=4, use_dora=True, target_modules=["q_proj", "v_proj"]),
    "peft IA3": tuned("IA3Config", PHI, target_modules=["k_proj", "v_proj", "fc2"], feedforward_modules=["fc2"]),
    "peft AdaLora": tuned("AdaLoraConfig", ROBERTA, total_step=100, target_modules=["query", "value"]),
    "peft VeRA": tuned("VeraConfig", MISTRAL, r=8, target_modules=["q_proj", "o_proj"]),
}
