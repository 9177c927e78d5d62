"""Models through PyTorch's exporters and `remat grad`, held to autograd: torchvision, transformers, `torch_modules.py`.

Each model is small, without Dropout's chance, in training and in evaluation mode, exported in four ways. `grad` is
given no option. Its gradients are compared with those of PyTorch in float64, PyTorch's own in float32 beside them: an
error is the largest difference of a parameter's gradient over its largest value, or over a thousandth of the largest
of all. An export is `same` to 1e-4. Where rounding decides, as at a ReLU's kink behind a BatchNorm of few numbers, both
float32 results may be further off: then the very graph is computed in float64 too, and is `same in float64` to 1e-5.
Needs torchvision and transformers beside torch. The seed is 0.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from in_float64 import in_float64
from torch import Tensor, nn
from torch.nn import functional
from torch_modules import MODULES, Subject

import remat_cli as remat

NEAR = 1e-4
EXPORTER = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, KeyError, IndexError)
EXPORTER += (torch.onnx.errors.OnnxExporterError,)
IN_FLOAT64 = 1e-5
WAYS: dict[str, dict[str, Any]] = {
    "dynamo, optimize=False": {"dynamo": True, "optimize": False, "verbose": False},
    "dynamo": {"dynamo": True, "verbose": False},
    "traced, whole": {
        "dynamo": False,
        "do_constant_folding": False,
        "training": torch.onnx.TrainingMode.PRESERVE,
    },
    "traced": {"dynamo": False},
}


class Logits(nn.Module):
    """A transformer of Hugging Face as ids or pixels in, logits out."""

    def __init__(self, model: nn.Module, given: str) -> None:
        super().__init__()
        self.model, self.given = model, given

    def forward(self, x: Tensor) -> Tensor:
        extra: dict[str, Any] = {}
        if "pixel" not in self.given:
            # without a mask transformers looks for packed sequences by an op that tracing cannot export
            extra |= {"attention_mask": torch.ones_like(x)} | ({"use_cache": False} if self._caches() else {})
        if "decoder_input_ids" in self.given:
            extra["decoder_input_ids"] = x
        return self.model(**{self.given.split()[0]: x}, **extra).logits

    def _caches(self) -> bool:
        return hasattr(self.model.config, "use_cache")


SMALL = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "word_embed_proj_dim", "embedding_size"), 32),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "hidden_dim", "n_inner", "encoder_ffn_dim"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("vocab_size", "max_position_embeddings", "n_positions"), 64),
    **{"num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "decoder_ffn_dim": 64, "decoder_attention_heads": 4},
    **{"image_size": 32, "patch_size": 8, "num_labels": 10, "pad_token_id": 0, "decoder_start_token_id": 0},
    **{"num_hidden_groups": 1, "rotary_dim": 4, "type_vocab_size": 2, "attention_types": [[["global"], 2]]},
}
SPECIAL: dict[str, dict[str, Any]] = {
    "swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2, "patch_size": 4},
    "convnext": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    "resnet": {"hidden_sizes": [8, 16], "depths": [1, 1], "embedding_size": 8},
    "segformer": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2, "decoder_hidden_size": 16}
    | {
        "num_attention_heads": [1, 2],
        "sr_ratios": [2, 1],
        "patch_sizes": [7, 3],
        "strides": [4, 2],
        "mlp_ratios": [2, 2],
    },
}
LANGUAGE = {
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "gpt_neox", "opt", "bloom", "falcon", "llama", "mistral"), "CausalLM"),
    **dict.fromkeys(("qwen2", "qwen3", "gemma", "gemma2", "phi", "phi3", "olmo", "stablelm", "starcoder2"), "CausalLM"),
    **dict.fromkeys(("bert", "distilbert", "roberta", "albert", "electra", "mpnet"), "MaskedLM"),
    **dict.fromkeys(("t5", "bart"), "Seq2SeqLM"),
    # a later series, of kinds that none of the above is
    **dict.fromkeys(("gpt_bigcode", "codegen", "xglm", "biogpt", "olmo2", "cohere", "nemotron", "granite"), "CausalLM"),
    **dict.fromkeys(("mamba", "mixtral", "rwkv"), "CausalLM"),
    **dict.fromkeys(("deberta-v2", "xlnet", "squeezebert", "convbert", "roformer", "fnet", "rembert"), "MaskedLM"),
    **dict.fromkeys(("marian", "mbart", "pegasus"), "Seq2SeqLM"),
}
TIMM: dict[str, dict[str, Any]] = {
    "cait_xxs24_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "xcit_nano_12_p8_224": {"img_size": 32, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "mixer_s32_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2},
    "resmlp_12_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2},
    "gmlp_ti16_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2},
    "deit_tiny_distilled_patch16_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "beit_base_patch16_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "eva02_tiny_patch14_224": {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "poolformer_s12": {"layers": (1, 1, 1, 1), "embed_dims": (8, 16, 16, 32)},
    "levit_128s": {"img_size": 64, "embed_dim": (16, 32, 32), "depth": (1, 1, 1), "key_dim": 8, "num_heads": (2, 2, 2)},
    "efficientformer_l1": {"img_size": 64, "depths": (1, 1, 1, 1), "embed_dims": (8, 16, 16, 32)},
    "convnextv2_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 16, 32)},
    "nf_resnet26": {"layers": (1, 1, 1, 1)},
    "ghostnet_050": {},
    "repvgg_a0": {},
    "res2net50_14w_8s": {"layers": (1, 1, 1, 1)},
    "resnest14d": {},
    "sknet18": {},
    "ecaresnet26t": {"layers": (1, 1, 1, 1)},
    "focalnet_tiny_srf": {"depths": (1, 1), "embed_dim": 16, "focal_levels": (2, 2), "focal_windows": (3, 3)},
    "edgenext_xx_small": {},
    "twins_svt_small": {"img_size": 64, "depths": (1, 1), "embed_dims": (16, 32), "num_heads": (2, 2)},
    "inception_v3": {},
    "davit_tiny": {"depths": (1, 1), "embed_dims": (16, 32), "num_heads": (2, 2)},
    "maxvit_rmlp_pico_rw_256": {"img_size": 64},
    "mobilevitv2_050": {},
    "swinv2_cr_tiny_224": {"img_size": 64, "window_size": 4, "depths": (1, 1), "embed_dim": 16, "num_heads": (2, 2)},
}
VISION = ("vit", "deit", "beit", "dinov2", "swin", "convnext", "resnet", "segformer")


def hugging(kind: str) -> tuple[nn.Module, Tensor, int]:
    import transformers

    own = SPECIAL.get(kind, {})
    known = transformers.AutoConfig.for_model(kind).to_dict()
    given = {
        key: value
        for key, value in {**SMALL, **own}.items()
        if key in known and (key in own or known[key] is not None or key == "num_key_value_heads")
    }
    given |= {key: 0.0 for key, value in known.items() if "drop" in key and isinstance(value, float)}
    config = transformers.AutoConfig.for_model(kind, **given)
    if kind in VISION:
        head = "SemanticSegmentation" if kind == "segformer" else "ImageClassification"
        config.num_labels = 10
        model = getattr(transformers, f"AutoModelFor{head}").from_config(config)
        return Logits(model, "pixel_values"), torch.randn(2, 3, 32, 32), 1
    head = LANGUAGE[kind]
    model = getattr(transformers, f"AutoModelFor{head}").from_config(config)
    names = "input_ids decoder_input_ids" if head == "Seq2SeqLM" else "input_ids"
    return Logits(model, names), torch.randint(2, 64, (2, 12)), 2


def vision(kind: str) -> tuple[nn.Module, Tensor, int]:
    from torchvision import models as tv
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig
    from torchvision.models.resnet import BasicBlock, Bottleneck

    made: dict[str, Any] = {
        "resnet18": lambda: tv.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10),
        "resnext": lambda: tv.ResNet(Bottleneck, [1, 1, 1, 1], 10, groups=4, width_per_group=8),
        "vgg": lambda: small_vgg(tv.VGG(tv.vgg.make_layers([8, "M", 16, "M"], True), 10)),
        "densenet": lambda: tv.DenseNet(8, (2, 2), 16, num_classes=10),
        "mobilenet_v2": lambda: tv.MobileNetV2(10, 0.25),
        "mobilenet_v3": lambda: tv.mobilenet_v3_small(num_classes=10, width_mult=0.25),
        "shufflenet": lambda: tv.ShuffleNetV2([1, 2, 1], [8, 16, 32, 64, 64], 10),
        "squeezenet": lambda: tv.SqueezeNet("1_1", 10),
        "mnasnet": lambda: tv.MNASNet(0.35, 10),
        "efficientnet": lambda: EfficientNet(
            [MBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(4, 3, 2, 8, 16, 1)], 0.0, num_classes=10
        ),
        "convnext_tv": lambda: ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=10),
        "swin_tv": lambda: tv.SwinTransformer([4, 4], 16, [1, 1], [2, 2], [2, 2], num_classes=10),
        "vit_tv": lambda: tv.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10),
        "regnet": lambda: tv.regnet_y_400mf(num_classes=10),
    }
    size = {"squeezenet": 64, "regnet": 64, "mobilenet_v2": 96, "mobilenet_v3": 96, "mnasnet": 96, "shufflenet": 64}
    return made[kind](), torch.randn(4, 3, size.get(kind, 32), size.get(kind, 32)), 1


def timm_model(kind: str) -> Subject:
    import timm

    given = TIMM[kind]
    rates = {"drop_rate": 0.0} if kind != "inception_v3" else {}
    size = given.get("img_size", 299 if kind == "inception_v3" else 64)
    return Subject(timm.create_model(kind, num_classes=10, **rates, **given), (torch.randn(4, 3, size, size),))


def small_vgg(net: Any) -> nn.Module:
    """Its head's width is fixed."""
    net.classifier = nn.Sequential(nn.Linear(16 * 49, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 10))
    return net


TORCHVISION = (
    *("resnet18", "resnext", "vgg", "densenet", "mobilenet_v2", "mobilenet_v3", "shufflenet", "squeezenet"),
    *("mnasnet", "efficientnet", "convnext_tv", "swin_tv", "vit_tv", "regnet"),
)
NAMES = (*TORCHVISION, *LANGUAGE, *VISION, *MODULES, *TIMM)


def without_chance(module: nn.Module) -> nn.Module:
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if "drop" in name and isinstance(value, float):
                setattr(part, name, 0.0)
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if type(part).__name__ == "StochasticDepth":
            part.p = 0.0
    return module


def gradients(subject: Subject, module: nn.Module, given: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Autograd's, of a copy of the subject's module, in the module's own precision."""
    module = copy.deepcopy(module)
    kind = next((value.dtype for value in module.parameters()), torch.float32)
    inputs = [x.to(kind) if x.is_floating_point() else x for x in subject.inputs]
    output = first(module(*inputs))
    if subject.loss == "cross-entropy":
        loss = functional.cross_entropy(output.movedim(subject.axis, 1), given["labels"])
    else:
        loss = output if subject.loss == "own" else functional.mse_loss(output, given["target"].to(kind))
    loss.backward()
    return {name: value.grad.numpy() for name, value in module.named_parameters() if value.grad is not None}


def first(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def given_besides(subject: Subject) -> dict[str, Tensor]:
    """What the step reads besides the module's own inputs."""
    with torch.no_grad():
        output = first(copy.deepcopy(subject.module)(*subject.inputs))
    if subject.loss == "own":
        return {}
    if subject.loss == "mse":
        return {"target": torch.randn_like(output)}
    shape = [size for place, size in enumerate(output.shape) if place != subject.axis]
    return {"labels": torch.randint(0, output.shape[subject.axis], shape)}


def worst(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> tuple[float, str]:
    scale = 1e-3 * max(float(np.abs(value).max()) for value in expected.values())
    errors = {
        name: float(np.abs(found[name] - value).max()) / max(scale, float(np.abs(value).max()))
        for name, value in expected.items()
    }
    name = max(errors, key=lambda one: errors[one])
    return errors[name], name


def exported(subject: Subject, settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """Why PyTorch does not export it; empty if it does."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            torch.onnx.export(copy.deepcopy(subject.module), subject.inputs, str(path), **settings)
    except EXPORTER as error:
        return {"not exported": f"{type(error).__name__}: {str(error)[:200]}"}
    return {}


def tried(subject: Subject, path: Path, witness: dict[str, Any]) -> dict[str, Any]:
    """What came of one export: an error, or why there is none."""
    try:
        training = remat.grad(path) if subject.loss != "mse" else remat.grad(path, loss="mse")
    except remat.RematError as refused:
        return {"refused": str(refused)}
    module = subject.module
    session = onnxruntime.InferenceSession(training.SerializeToString(), providers=["CPUExecutionProvider"])
    state = remat.initial_state({**remat_values(path), **module.state_dict()}, training)
    besides = {name: value.numpy() for name, value in witness["besides"].items()}
    data = [entry.name for entry in session.get_inputs() if entry.name not in {*state, *besides, "learning_rate"}]
    read = [value.name for value in onnx.load(path, load_external_data=False).graph.input]
    inputs = besides | {name: subject.inputs[read.index(name)].numpy() for name in data}
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, {**state, **inputs}), strict=True))
    answer = compared(outputs, module, witness)
    if answer.get("error", 0) > NEAR:
        exactly = compared(in_float64(training, {**state, **inputs}), module, witness)
        answer |= {"in float64": exactly["error"]}
    return answer


def compared(outputs: dict[str, np.ndarray], module: nn.Module, witness: dict[str, Any]) -> dict[str, Any]:
    """A step's gradients beside autograd's."""
    found = {name.removesuffix("_grad"): value for name, value in outputs.items() if name.endswith("_grad")}
    aliases: dict[int, list[str]] = {}
    for name, value in module.named_parameters(remove_duplicate=False):
        aliases.setdefault(id(value), []).append(name)
    for names in aliases.values():
        there = [name for name in names if name in found]
        if there and names[0] not in found:
            found[names[0]] = found.pop(there[0])
    missing = sorted(set(witness["exact"]) - set(found))
    extra = sorted(set(found) - set(witness["exact"]))
    if missing or extra:
        return {"missing": missing[:3], "extra": extra[:3]}
    error, name = worst(found, witness["exact"])
    return {"error": error, "of": name}


def remat_values(path: Path) -> dict[str, np.ndarray]:
    from remat_cli.onnx_graph.load import load_with_tensors
    from remat_cli.training.state import values_of

    return values_of(load_with_tensors(path))


def verdict(answer: dict[str, Any]) -> str:
    if "refused" in answer:
        helps = any(
            option in answer["refused"] for option in ("optimize=False", "--freeze-bn", "--tie", "--params-from")
        )
        return "refused, with the option" if helps else "refused"
    if "error" not in answer:
        return "not exported" if answer.get("not exported") else "other parameters"
    if answer["error"] <= NEAR:
        return "same"
    return "same in float64" if answer["in float64"] <= IN_FLOAT64 else "differs"


KEY = ("model", "mode", "way")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(3)
    for kind in asked.names or NAMES:
        for mode in ("train", "eval"):
            yield from _series(kind, mode)


def _series(kind: str, mode: str) -> list[dict[str, Any]]:
    """One model's lines; where PyTorch itself cannot run the small configuration, that."""
    try:
        return series(kind, mode)
    except (RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError, ImportError) as error:
        said = f"{type(error).__name__}: {str(error)[:200]}"
        return [{"model": kind, "mode": mode, "way": "-", "verdict": "not built", "not built": said}]


def subject_of(kind: str) -> Subject:
    if kind in MODULES:
        return MODULES[kind]()
    if kind in TIMM:
        return timm_model(kind)
    module, x, axis = (vision if kind in TORCHVISION else hugging)(kind)
    return Subject(module, (x,), axis=axis)


def series(kind: str, mode: str) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    subject = subject_of(kind)
    without_chance(subject.module).train(mode == "train")
    besides = given_besides(subject)
    exact = gradients(subject, copy.deepcopy(subject.module).double(), besides)
    own = worst(gradients(subject, subject.module, besides), exact)[0]
    found = []
    for way, settings in WAYS.items():
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            answer = exported(subject, settings, path) or tried(subject, path, {"exact": exact, "besides": besides})
        found.append(
            {"model": kind, "mode": mode, "way": way, "verdict": verdict(answer), "pytorch float32": own}
            | {**answer, "seconds": round(time.process_time() - began, 1)}
        )
    return found
