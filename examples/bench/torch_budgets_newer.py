"""Another 28 modules of timm, transformers, diffusers and peft, which no file here had named when they were tried.

Invariant: that of `torch_budgets_models.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_budgets_models import MEANT, MISTRAL, SEEING, Made, diffused, of_timm, seen, tuned, words
from torch_budgets_others import ENDS, FREE

BERT: dict[str, Any] = {"max_position_embeddings": 64, **MEANT}
STAGES: dict[str, Any] = {"image_size": 64, "num_channels": 3}
LATENT = {"in_channels": 4, "out_channels": 4, "num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 16}


MODELS: dict[str, Callable[[], Made]] = {
    "timm dla": of_timm("dla46_c"),
    "timm pit": of_timm("pit_ti_224", 224, 1),
    "funnel": words(
        "FunnelConfig",
        "FunnelForMaskedLM",
        **{"d_model": 64, "n_head": 4, "d_head": 16, "d_inner": 192, "block_sizes": [1, 1]},
    ),
    "yoso": words("YosoConfig", "YosoForMaskedLM", use_expectation=True, **BERT),
    "megatron_bert": words("MegatronBertConfig", "MegatronBertForMaskedLM", **BERT),
    "modernbert": words(
        "ModernBertConfig", "ModernBertForMaskedLM", pad_token_id=0, attention_dropout=0.1, local_attention=16, **MEANT
    ),
    "gpt_neo": words(
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        **{"hidden_size": 64, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
        **{"window_size": 16, "use_cache": False, "bos_token_id": 0, "eos_token_id": 0},
    ),
    "gpt_bigcode": words("GPTBigCodeConfig", "GPTBigCodeForCausalLM", n_embd=64, n_layer=2, n_head=4, use_cache=False),
    "ctrl": words("CTRLConfig", "CTRLLMHeadModel", n_embd=64, n_layer=2, n_head=4, dff=192, use_cache=False),
    "gemma2": words("Gemma2Config", "Gemma2ForCausalLM", num_key_value_heads=2, head_dim=16, sliding_window=16, **FREE),
    "glm": words("GlmConfig", "GlmForCausalLM", num_key_value_heads=2, head_dim=16, pad_token_id=0, **FREE),
    "starcoder2": words(
        "Starcoder2Config", "Starcoder2ForCausalLM", num_key_value_heads=2, residual_dropout=0.1, **FREE
    ),
    "diffllama": words("DiffLlamaConfig", "DiffLlamaForCausalLM", num_key_value_heads=2, **FREE),
    "helium": words("HeliumConfig", "HeliumForCausalLM", num_key_value_heads=2, head_dim=16, pad_token_id=0, **FREE),
    "lfm2": words(
        "Lfm2Config", "Lfm2ForCausalLM", num_key_value_heads=2, layer_types=["conv", "full_attention", "conv"], **FREE
    ),
    "recurrent_gemma": words(
        "RecurrentGemmaConfig",
        "RecurrentGemmaForCausalLM",
        pad_token_id=0,
        lru_width=64,
        attention_window_size=16,
        **FREE,
    ),
    "gpt_oss": words(
        "GptOssConfig", "GptOssForCausalLM", num_local_experts=4, head_dim=16, num_key_value_heads=2, **FREE
    ),
    "switch": words(
        "SwitchTransformersConfig",
        "SwitchTransformersForConditionalGeneration",
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        num_experts=4,
        decoder_start_token_id=0,
        use_cache=False,
    ),
    "led": words("LEDConfig", "LEDForConditionalGeneration", attention_window=16, **ENDS),
    "beit": seen("BeitConfig", "BeitModel", drop_path_rate=0.2, **SEEING),
    "swinv2": seen(
        "Swinv2Config", "Swinv2Model", 2, depths=[1, 1], num_heads=[2, 4], embed_dim=32, window_size=4, **STAGES
    ),
    "convnextv2": seen(
        "ConvNextV2Config", "ConvNextV2Model", 4, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], **STAGES
    ),
    "diffusers CogVideoX": diffused(
        "CogVideoXTransformer3DModel",
        ("hidden_states", "encoder_hidden_states", "timestep"),
        lambda: (torch.randn(1, 2, 4, 8, 8), torch.randn(1, 12, 32), torch.tensor([3])),
        **{
            **LATENT,
            "text_embed_dim": 32,
            "time_embed_dim": 8,
            "sample_width": 8,
            "sample_height": 8,
            "sample_frames": 5,
        },
        **{"max_text_seq_length": 12},
    ),
    "diffusers AuraFlow": diffused(
        "AuraFlowTransformer2DModel",
        ("hidden_states", "encoder_hidden_states", "timestep"),
        lambda: (torch.randn(2, 4, 16, 16), torch.randn(2, 12, 32), torch.tensor([0.1, 0.7])),
        **{"sample_size": 16, "patch_size": 2, "in_channels": 4, "num_mmdit_layers": 1, "num_single_dit_layers": 1},
        **{"attention_head_dim": 16, "num_attention_heads": 4, "joint_attention_dim": 32, "caption_projection_dim": 64},
        **{"out_channels": 4, "pos_embed_max_size": 64},
    ),
    "peft LoHa": tuned("LoHaConfig", MISTRAL, r=4, target_modules=["q_proj", "v_proj"]),
    "peft VBLoRA": tuned("VBLoRAConfig", MISTRAL, r=4, num_vectors=32, vector_length=16, target_modules=["q_proj"]),
    "peft MiSS": tuned("MissConfig", MISTRAL, r=4, target_modules=["q_proj", "v_proj"]),
    "peft C3A": tuned("C3AConfig", MISTRAL, block_size=16, target_modules=["q_proj", "o_proj"]),
}
