"""The zoo: one literal table of the networks that `remat zoo` can build, by name.

Invariant: a place is imported only when its network is asked for, and what a user may set is what the function there
takes beyond the settings given here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from typing import Any

from remat_cli.errors import Usage, meant


@dataclass(frozen=True, slots=True)
class Network:
    """`place` is module:function under this package; `settings` are the arguments that make it this network."""

    place: str
    about: str
    settings: Mapping[str, int | str] = field(default_factory=dict)

    def builder(self) -> Callable[..., str]:
        module, function = self.place.split(":")
        built: Callable[..., str] = getattr(import_module(f"remat_cli.zoo.{module}"), function)
        return built

    def options(self) -> list[str]:
        """What a user may set: all the builder takes but the network's own identity."""
        return [name for names in self._taken().values() for name in names if name not in ("depth", "scale")]

    def build(self, net: Any, settings: Mapping[str, Any]) -> str:
        """The network with these settings on top of its own; the name of its output."""
        given, defaults = {**self.settings, **settings}, inspect.signature(self.builder()).parameters
        taken: dict[str, Any] = {}
        for name, parts in self._taken().items():
            own = {part: given[part] for part in parts if part in given}
            if parts == [name]:
                taken |= own
            else:
                taken[name] = replace(defaults[name].default, **own)
        return self.builder()(net, **taken)

    def _taken(self) -> dict[str, list[str]]:
        """What the builder takes besides the net: the settings that each parameter stands for, a record for several."""
        taken = list(inspect.signature(self.builder()).parameters.values())[1:]
        return {
            one.name: [part.name for part in fields(one.default)] if is_dataclass(one.default) else [one.name]
            for one in taken
        }


RESNETS, DENSENETS = (18, 34, 50, 101, 152, 200), (121, 161, 169, 201)
ZOO: Mapping[str, Network] = {
    "mlp": Network("small:mlp", "a multilayer perceptron"),
    "cnn": Network("small:cnn", "a small convolutional network with BatchNormalization"),
    "rotor-toy": Network("small:rotor_toy", "the 6-layer chain of Rotor's section 3.2, by its activations' sizes"),
    "vgg16": Network("vgg:vgg", "VGG-16", {"depth": 16}),
    "vgg19": Network("vgg:vgg", "VGG-19", {"depth": 19}),
    "mobilenet-v1": Network("mobilenet:mobilenet_v1", "MobileNet v1"),
    "mobilenet-v2": Network("mobilenet:mobilenet_v2", "MobileNet v2"),
    **{f"resnet{depth}": Network("resnet:resnet", f"ResNet-{depth}", {"depth": depth}) for depth in RESNETS},
    "resnet1001": Network("resnet:preactivation", "ResNet-1001, pre-activation, for 32x32 images"),
    **{f"densenet{depth}": Network("densenet:densenet", f"DenseNet-{depth}", {"depth": depth}) for depth in DENSENETS},
    "inception-v3": Network("inception:inception_v3", "Inception v3 without the auxiliary classifier"),
    **{
        f"efficientnet-b{scale}": Network("efficientnet:efficientnet", f"EfficientNet-B{scale}", {"scale": scale})
        for scale in range(8)
    },
    "regnetx-400mf": Network("regnet:regnet", "RegNetX-400MF", {"scale": "x-400mf"}),
    "regnetx-3.2gf": Network("regnet:regnet", "RegNetX-3.2GF", {"scale": "x-3.2gf"}),
    "regnety-400mf": Network("regnet:regnet", "RegNetY-400MF", {"scale": "y-400mf"}),
    "regnety-3.2gf": Network("regnet:regnet", "RegNetY-3.2GF", {"scale": "y-3.2gf"}),
    "vovnet39": Network("vovnet:vovnet", "VoVNet-39", {"depth": 39}),
    "vovnet57": Network("vovnet:vovnet", "VoVNet-57", {"depth": 57}),
    "resnest50": Network("resnest:resnest", "ResNeSt-50", {"depth": 50}),
    "resnest101": Network("resnest:resnest", "ResNeSt-101", {"depth": 101}),
    "unet": Network("unet:unet", "U-Net; --upsample transposed, nearest or linear"),
    "fcn8": Network("vgg:fcn8", "FCN-8s on VGG-16"),
    "segnet": Network("vgg:segnet", "SegNet on VGG-16, with MaxUnpool"),
    "gpt2": Network("transformer:gpt2", "GPT-2 (124M)", {"hidden": 768, "layers": 12, "heads": 12}),
    "gpt2-medium": Network("transformer:gpt2", "GPT-2 medium (355M)", {"hidden": 1024, "layers": 24, "heads": 16}),
    "gpt2-large": Network("transformer:gpt2", "GPT-2 large (774M)", {"hidden": 1280, "layers": 36, "heads": 20}),
    "gpt2-xl": Network("transformer:gpt2", "GPT-2 XL (1.5B)", {"hidden": 1600, "layers": 48, "heads": 25}),
    "bert-base": Network("transformer:bert", "BERT base", {"hidden": 768, "layers": 12, "heads": 12}),
    "bert-large": Network("transformer:bert", "BERT large", {"hidden": 1024, "layers": 24, "heads": 16}),
    "albert-base": Network("transformer:albert", "ALBERT base", {"hidden": 768, "layers": 12, "heads": 12}),
    "vit-b16": Network("transformer:vit", "ViT-B/16", {"hidden": 768, "layers": 12, "heads": 12, "patch": 16}),
    "vit-b32": Network("transformer:vit", "ViT-B/32", {"hidden": 768, "layers": 12, "heads": 12, "patch": 32}),
    "llama-1b": Network("llama:llama", "Llama 3.2 (1B)", {"hidden": 2048, "layers": 16, "heads": 32}),
    "mamba-130m": Network("mamba:mamba", "Mamba (130M), its scan by doubling", {"hidden": 768, "layers": 24}),
    "convnext-large": Network("convnext:convnext", "ConvNeXt-L"),
    "diffusion-unet": Network(
        "diffusion:diffusion", "the U-Net of diffusion models, with attention, for 256x256 images"
    ),
    "vit-l16": Network("transformer:vit", "ViT-L/16", {"hidden": 1024, "layers": 24, "heads": 16, "patch": 16}),
}


def find(name: str) -> Network:
    """The network of that name, or the first of a family's; underscores and capitals are forgiven."""
    wanted = name.lower().replace("_", "-")
    if wanted in ZOO:
        return ZOO[wanted]
    for known, network in ZOO.items():
        rest = known.removeprefix(wanted)
        if wanted.isalpha() and rest != known and (rest.startswith("-") or rest.isdigit()):
            return network
    raise Usage(f"there is no network called {name}; {meant(name, ZOO)}")
