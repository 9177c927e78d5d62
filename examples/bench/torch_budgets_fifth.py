"""The modules that the roadmap names, which no file here had tried: experts, detection, segmentation, both with text.

Invariant: that of `torch_budgets_models.py`. Those that have dropout keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_budgets_fourth import EXPERTS, LLAMA
from torch_budgets_models import Made, Own, diffused, ids, in_text, of_timm, words

QUERIES: dict[str, Any] = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "num_queries": 12}
QUERIES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
RESNET: dict[str, Any] = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}
RESNET |= {"layer_type": "basic", "out_features": ["stage4"]}
SWIN: dict[str, Any] = {"image_size": 64, "embed_dim": 24, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 4]}
SWIN |= {"window_size": 4, "out_features": ["stage1", "stage2", "stage3", "stage4"]}
MASKS: dict[str, Any] = {"feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "num_attention_heads": 4}
MASKS |= {"encoder_feedforward_dim": 64, "dim_feedforward": 64, "encoder_layers": 2, "decoder_layers": 3}
MASKS |= {"num_queries": 10, "num_labels": 5}
CROSSED: dict[str, Any] = {"sample_size": 16, "in_channels": 4, "out_channels": 4, "layers_per_block": 1}
CROSSED |= {"block_out_channels": (16, 32), "norm_num_groups": 8, "cross_attention_dim": 32, "attention_head_dim": 8}
CROSSED |= {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D")}
CROSSED |= {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
EYES: dict[str, Any] = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 8}


class Outputs(nn.Module):
    """The mean square of all that a network makes by these names: its own loss matches boxes outside of torch."""

    def __init__(self, net: nn.Module, *names: str) -> None:
        super().__init__()
        self.net, self.names = net, names

    def forward(self, pictures: Tensor) -> Tensor:
        found = self.net(pictures)
        return torch.stack([found[name].square().mean() for name in self.names]).sum()


def detr() -> Made:
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    asked = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=ResNetConfig(**RESNET),
        num_labels=5,
        **QUERIES,
    )
    return Outputs(DetrForObjectDetection(asked), "logits", "pred_boxes"), (torch.randn(2, 3, 96, 96),)


def mask2former() -> Made:
    from transformers import Mask2FormerConfig, Mask2FormerModel, SwinConfig

    net = Mask2FormerModel(Mask2FormerConfig(backbone_config=SwinConfig(**SWIN), **MASKS))
    names = "transformer_decoder_last_hidden_state", "pixel_decoder_last_hidden_state"
    return Outputs(net, *names), (torch.randn(2, 3, 64, 64),)


def qwen2_vl() -> Made:
    """Text with a picture of 4 by 4 patches, which are 4 tokens."""
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    ropes = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    text = {**LLAMA, "vocab_size": 256, "rope_parameters": ropes}
    marks = {"image_token_id": 250, "video_token_id": 251, "vision_start_token_id": 252, "vision_end_token_id": 253}
    net = Qwen2VLForConditionalGeneration(Qwen2VLConfig(text_config=text, vision_config=EYES, **marks))
    x = ids(2) % 240 + 1
    x[:, 4], x[:, 5:9], x[:, 9] = 252, 250, 253
    shapes = torch.tensor([[1, 4, 4]] * 2)
    names = "input_ids", "labels", "pixel_values", "image_grid_thw", "mm_token_type_ids"
    return Own(net, *names), (x, x, torch.randn(32, 3 * 2 * 8 * 8), shapes, (x == 250).int())


MODELS: dict[str, Callable[[], Made]] = {
    "mixtral": words("MixtralConfig", "MixtralForCausalLM", **EXPERTS | {"num_local_experts": 4}),
    "detr": detr,
    "mask2former": mask2former,
    "timm maxvit": of_timm("maxvit_rmlp_nano_rw_256", 64, 2, img_size=64, depths=(1, 1, 1, 1)),
    "diffusers UNet2DCondition": diffused(
        "UNet2DConditionModel", ("sample", "encoder_hidden_states", "timestep"), in_text, **CROSSED
    ),
    "qwen2_vl": qwen2_vl,
}
