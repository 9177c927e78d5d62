"""Another forty modules of timm, transformers, diffusers and peft, which no file here had named when they were tried.

Invariant: that of `torch_budgets_models.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_budgets_models import MEANT, MISTRAL, ROBERTA, SEEING, Made, diffused, in_text, of_timm, seen, tuned, words

FREE: dict[str, Any] = {"use_cache": False, **MEANT}
SHORT: dict[str, Any] = {"use_cache": False, "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8}
CODES = {"block_out_channels": (16, 32), "norm_num_groups": 8, "latent_channels": 3, "num_vq_embeddings": 32}
CODES |= {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
PATCHES = {"num_attention_heads": 4, "attention_head_dim": 16, "in_channels": 4, "num_layers": 2, "sample_size": 16}
FILMS = {"patch_size": (1, 2, 2), "num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4, "num_layers": 2}
ENDS = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 192, "decoder_ffn_dim": 192}
ENDS |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "use_cache": False}


def labelled() -> tuple[torch.Tensor, ...]:
    return torch.randn(2, 4, 16, 16), torch.tensor([3, 500]), torch.tensor([1, 2])


def filmed() -> tuple[torch.Tensor, ...]:
    return torch.randn(1, 4, 2, 16, 16), torch.randn(1, 12, 32), torch.tensor([3])


MODELS: dict[str, Callable[[], Made]] = {
    "timm lcnet": of_timm("lcnet_050"),
    "timm starnet": of_timm("starnet_s050"),
    "timm hrnet": of_timm("hrnet_w18_small", 64, 4),
    "timm visformer": of_timm("visformer_tiny", img_size=64),
    "timm crossvit": of_timm("crossvit_tiny_240", 240, 1, depth=([1, 2, 0],)),
    "timm efficientvit_m": of_timm("efficientvit_m0", 224, 2),
    "timm tresnet": of_timm("tresnet_m", 64, 4, layers=(1, 1, 1, 1)),
    "timm repghostnet": of_timm("repghostnet_050"),
    "timm convit": of_timm("convit_tiny", 224, 2, depth=3),
    "timm inception_next": of_timm("inception_next_atto", drop_path_rate=0.2),
    "timm dpn": of_timm("dpn48b", 64, 4),
    "timm fasternet": of_timm("fasternet_t0", drop_path_rate=0.2),
    "timm shvit": of_timm("shvit_s1", 224, 2),
    "timm swiftformer": of_timm("swiftformer_xs", 224, 1),
    "fnet": words("FNetConfig", "FNetForMaskedLM", max_position_embeddings=64, **MEANT),
    "mpnet": words("MPNetConfig", "MPNetForMaskedLM", max_position_embeddings=64, **MEANT),
    "squeezebert": words("SqueezeBertConfig", "SqueezeBertForMaskedLM", embedding_size=64, **MEANT),
    "rembert": words("RemBertConfig", "RemBertForMaskedLM", input_embedding_size=32, **MEANT),
    "roformer": words("RoFormerConfig", "RoFormerForMaskedLM", embedding_size=64, **MEANT),
    "persimmon": words("PersimmonConfig", "PersimmonForCausalLM", pad_token_id=0, **FREE),
    "stablelm": words("StableLmConfig", "StableLmForCausalLM", num_key_value_heads=2, **FREE),
    "olmo2": words("Olmo2Config", "Olmo2ForCausalLM", pad_token_id=0, **FREE),
    "granite": words("GraniteConfig", "GraniteForCausalLM", attention_dropout=0.1, **FREE),
    "cohere": words("CohereConfig", "CohereForCausalLM", pad_token_id=0, **FREE),
    "nemotron": words("NemotronConfig", "NemotronForCausalLM", num_key_value_heads=2, **FREE),
    "biogpt": words("BioGptConfig", "BioGptForCausalLM", **FREE),
    "codegen": words("CodeGenConfig", "CodeGenForCausalLM", n_positions=64, **SHORT),
    "gptj": words("GPTJConfig", "GPTJForCausalLM", n_positions=64, **SHORT),
    "xglm": words("XGLMConfig", "XGLMForCausalLM", use_cache=False, d_model=64, num_layers=2, attention_heads=4),
    "pegasus": words("PegasusConfig", "PegasusForConditionalGeneration", **ENDS),
    "granitemoe": words("GraniteMoeConfig", "GraniteMoeForCausalLM", num_local_experts=4, **FREE),
    "dinov2": seen("Dinov2Config", "Dinov2Model", drop_path_rate=0.2, **SEEING),
    "vit_msn": seen("ViTMSNConfig", "ViTMSNModel", **SEEING),
    "siglip": seen("SiglipVisionConfig", "SiglipVisionModel", **SEEING),
    "diffusers DiT": diffused(
        "DiTTransformer2DModel", ("hidden_states", "timestep", "class_labels"), labelled, out_channels=8, **PATCHES
    ),
    "diffusers VQ": diffused("VQModel", ("sample",), lambda: (torch.randn(2, 3, 32, 32),), **CODES),
    "diffusers Sana": diffused(
        "SanaTransformer2DModel",
        ("hidden_states", "encoder_hidden_states", "timestep"),
        in_text,
        **PATCHES,
        **{"num_cross_attention_heads": 4, "cross_attention_head_dim": 16, "cross_attention_dim": 64},
        **{"out_channels": 4, "caption_channels": 32},
    ),
    "diffusers Wan": diffused(
        "WanTransformer3DModel",
        ("hidden_states", "encoder_hidden_states", "timestep"),
        filmed,
        **FILMS,
        **{"out_channels": 4, "text_dim": 32, "freq_dim": 32, "ffn_dim": 48},
    ),
    "peft LoKr": tuned("LoKrConfig", MISTRAL, r=4, target_modules=["q_proj", "v_proj"]),
    "peft HRA": tuned("HRAConfig", ROBERTA, r=4, target_modules=["query", "value"]),
    "peft LNTuning": tuned("LNTuningConfig", ROBERTA, target_modules=["LayerNorm"]),
    "peft FourierFT": tuned("FourierFTConfig", MISTRAL, n_frequency=50, target_modules=["q_proj", "v_proj"]),
}
