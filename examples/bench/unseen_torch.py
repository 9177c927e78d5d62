"""Small models of torchvision, timm and transformers as forward models: graphs that nobody developed against.

Usage: python examples/bench/unseen_torch.py FOLDER [NAME ...]

Needs torch, torchvision, timm, transformers and onnxscript (made with torch 2.13, torchvision 0.28, timm 1.0.31,
transformers 5.23). Each becomes FOLDER/NAME.onnx, for `remat grad`; a model that PyTorch cannot export is passed by,
with a line that says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

IMAGES, LENGTH, WORDS = (8, 3, 64, 64), 48, 211

OPS = torch.library.Library("torchvision", "DEF")  # its definitions live as long as it does
for op in ("nms", "qnms"):
    OPS.define(f"{op}(Tensor dets, Tensor scores, float threshold) -> Tensor")


def vision(name: str, **options: Any) -> nn.Module:
    """A torchvision model; custom ops that its build may lack, and none of these uses, are declared above."""
    import torchvision

    model: nn.Module = getattr(torchvision.models, name)(weights=None, num_classes=10, **options)
    return model


def swin() -> nn.Module:
    from torchvision.models.swin_transformer import SwinTransformer

    return SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10)


def convnext() -> nn.Module:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    blocks = [CNBlockConfig(24, 48, 2), CNBlockConfig(48, 96, 2), CNBlockConfig(96, None, 2)]
    return ConvNeXt(blocks, stochastic_depth_prob=0.0, num_classes=10)


def mixer() -> nn.Module:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(num_classes=10, img_size=64, patch_size=8, num_blocks=3, embed_dim=64)


def poolformer() -> nn.Module:
    from timm.models.metaformer import MetaFormer

    return MetaFormer(depths=(1, 1, 2, 1), dims=(16, 32, 64, 96), num_classes=10)


def ghostnet() -> nn.Module:
    from timm import create_model

    return create_model("ghostnet_050", num_classes=10, drop_rate=0.0)


class Words(nn.Module):
    """A language model as token ids to logits, attention written out and nothing cached."""

    def __init__(self, config: str, model: str, **sizes: Any) -> None:
        super().__init__()
        import transformers

        made = getattr(transformers, config)(vocab_size=WORDS, **sizes)
        made._attn_implementation = "eager"
        self.net = getattr(transformers, model)(made)
        self.lean = "use_cache" in made.to_dict()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        options = {"use_cache": False} if self.lean else {}
        logits: torch.Tensor = self.net(input_ids=ids, return_dict=True, **options).logits
        return logits


MEANT = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 192}
DRY = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "shufflenet": partial(vision, "shufflenet_v2_x0_5"),
    "mnasnet": partial(vision, "mnasnet0_5", dropout=0.0),
    "mobilenet_v3": partial(vision, "mobilenet_v3_small", dropout=0.0),
    "squeezenet": partial(vision, "squeezenet1_1", dropout=0.0),
    "googlenet": partial(vision, "googlenet", aux_logits=False, init_weights=False, dropout=0.0),
    "swin": swin,
    "convnext": convnext,
    "mixer": mixer,
    "poolformer": poolformer,
    "ghostnet": ghostnet,
    "distilbert": partial(
        Words,
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        **{"dim": 64, "n_layers": 3, "n_heads": 4, "hidden_dim": 192, "dropout": 0.0, "attention_dropout": 0.0},
    ),
    "electra": partial(Words, "ElectraConfig", "ElectraForMaskedLM", embedding_size=32, **MEANT, **DRY),
    "llama": partial(Words, "LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2, **MEANT),
    "opt": partial(
        Words,
        "OPTConfig",
        "OPTForCausalLM",
        **{"hidden_size": 64, "ffn_dim": 192, "num_hidden_layers": 3, "num_attention_heads": 4, "dropout": 0.0},
        word_embed_proj_dim=64,
    ),
    "neox": partial(Words, "GPTNeoXConfig", "GPTNeoXForCausalLM", attention_dropout=0.0, **MEANT),
}


def exported(wanted: list[str]) -> Iterator[tuple[str, nn.Module, torch.Tensor]]:
    for name in wanted or MODELS:
        torch.manual_seed(0)
        model = MODELS[name]()
        sample = torch.randint(0, WORDS, (4, LENGTH)) if isinstance(model, Words) else torch.randn(IMAGES)
        yield name, model.train(), sample


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, model, sample in exported(wanted):
        try:
            program = torch.onnx.export(model, (sample,), dynamo=True, optimize=False, verbose=False)
        except torch.onnx.errors.OnnxExporterError as error:
            print(f"{name}: not exported: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        assert program is not None
        program.save(folder / f"{name}.onnx", external_data=False)
        print(folder / f"{name}.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
