"""Another thirty modules of timm, transformers, diffusers and peft, which no file here had named when they were tried.

Invariant: that of `torch_budgets_models.py`. Those that have dropout, or leave out whole paths, keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_budgets_models import MISTRAL, ROBERTA, SEEING, Made, diffused, of_timm, seen, tuned, words

SMALL: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
FREE: dict[str, Any] = {**SMALL, "use_cache": False}
LLAMA: dict[str, Any] = {**FREE, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXPERTS: dict[str, Any] = {**LLAMA, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
ENDS: dict[str, Any] = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "use_cache": False}
ENDS |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
PRIOR = {"num_attention_heads": 2, "attention_head_dim": 16, "num_layers": 2, "embedding_dim": 32, "num_embeddings": 12}
TINY = {"encoder_block_out_channels": (16, 16), "decoder_block_out_channels": (16, 16)}
TINY |= {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}


def prior() -> tuple[torch.Tensor, ...]:
    return torch.randn(2, 32), torch.tensor([3, 500]), torch.randn(2, 32), torch.randn(2, 12, 32)


MODELS: dict[str, Callable[[], Made]] = {
    "timm tinynet": of_timm("tinynet_e", drop_rate=0.2, drop_path_rate=0.1),
    "timm mixnet": of_timm("mixnet_s", 64, 4),
    "timm rexnet": of_timm("rexnet_100", 64, 4),
    "timm skresnet": of_timm("skresnet18", 64, 4),
    "timm selecsls": of_timm("selecsls42b", 64, 4),
    "timm vovnet": of_timm("ese_vovnet19b_dw", 64, 4),
    "timm gernet": of_timm("gernet_s", 64, 4, drop_path_rate=0.2),
    "timm mobilenetv1": of_timm("mobilenetv1_100", 64, 4, drop_rate=0.2),
    "timm sequencer2d": of_timm("sequencer2d_s", 64, 4, layers=(1, 1, 1, 1), embed_dims=(32, 64, 64, 64)),
    "timm mobileone": of_timm("mobileone_s0", 64, 4),
    "timm tnt": of_timm("tnt_s_legacy_patch16_224", 64, 4, img_size=64, depth=2),
    "camembert": words("CamembertConfig", "CamembertForMaskedLM", max_position_embeddings=64, **SMALL),
    "nystromformer": words(
        "NystromformerConfig", "NystromformerForMaskedLM", num_landmarks=8, segment_means_seq_len=48, **SMALL
    ),
    "imagegpt": words(
        "ImageGPTConfig", "ImageGPTForCausalImageModeling", n_embd=64, n_layer=2, n_head=4, use_cache=False
    ),
    "arcee": words("ArceeConfig", "ArceeForCausalLM", attention_dropout=0.1, **LLAMA),
    "apertus": words("ApertusConfig", "ApertusForCausalLM", **LLAMA),
    "bitnet": words("BitNetConfig", "BitNetForCausalLM", **LLAMA),
    "cohere2": words("Cohere2Config", "Cohere2ForCausalLM", sliding_window=16, **LLAMA),
    "ernie4_5": words("Ernie4_5Config", "Ernie4_5ForCausalLM", head_dim=16, **LLAMA),
    "exaone4": words("Exaone4Config", "Exaone4ForCausalLM", sliding_window=16, head_dim=16, **LLAMA),
    "hunyuan": words("HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", head_dim=16, **LLAMA),
    "olmoe": words("OlmoeConfig", "OlmoeForCausalLM", **EXPERTS),
    "qwen2_moe": words("Qwen2MoeConfig", "Qwen2MoeForCausalLM", shared_expert_intermediate_size=64, **EXPERTS),
    "blenderbot": words("BlenderbotConfig", "BlenderbotForConditionalGeneration", **ENDS),
    "ijepa": seen("IJepaConfig", "IJepaModel", hidden_dropout_prob=0.1, **SEEING),
    "diffusers Prior": diffused(
        "PriorTransformer", ("hidden_states", "timestep", "proj_embedding", "encoder_hidden_states"), prior, **PRIOR
    ),
    "diffusers AutoencoderTiny": diffused("AutoencoderTiny", ("sample",), lambda: (torch.randn(2, 3, 32, 32),), **TINY),
    "peft OFT": tuned("OFTConfig", MISTRAL, oft_block_size=16, target_modules=["q_proj", "v_proj"]),
    "peft RandLora": tuned("RandLoraConfig", MISTRAL, r=4, target_modules=["q_proj", "v_proj"]),
    "peft Road": tuned("RoadConfig", ROBERTA, target_modules=["query", "value"]),
    "peft PromptTuning": tuned("PromptTuningConfig", MISTRAL, num_virtual_tokens=4, task_type="CAUSAL_LM"),
}
