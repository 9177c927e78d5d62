"""Every network has as many parameters as its authors or the libraries it is known from say."""

from __future__ import annotations

from itertools import pairwise

import pytest

from remat_cli.zoo.build import describe
from remat_cli.zoo.names import ZOO

PUBLISHED = {
    # torchvision's model pages
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "regnetx-400mf": 5_495_976,
    "regnetx-3.2gf": 15_296_552,
    "regnety-400mf": 4_344_144,
    "regnety-3.2gf": 19_436_338,
    "densenet121": 7_978_856,
    "densenet161": 28_681_000,
    "densenet169": 14_149_480,
    "densenet201": 20_013_928,
    "mobilenet-v2": 3_504_872,
    "efficientnet-b0": 5_288_548,
    "efficientnet-b1": 7_794_184,
    "efficientnet-b2": 9_109_994,
    "efficientnet-b3": 12_233_232,
    "efficientnet-b4": 19_341_616,
    "efficientnet-b5": 30_389_784,
    "efficientnet-b6": 43_040_704,
    "efficientnet-b7": 66_347_960,
    "inception-v3": 23_834_568,  # 27_161_264 with the auxiliary classifier
    "vit-b16": 86_567_656,
    "vit-b32": 88_224_232,
    "vit-l16": 304_326_632,
    "convnext-large": 197_767_336,
    # Keras and its ports
    "mobilenet-v1": 4_231_976,
    # pytorchcv's table (PreResNet-1001; the paper says 10.2M)
    "resnet1001": 10_327_706,
    "resnet200": 64_673_832,
    "vovnet39": 22_600_296,
    "vovnet57": 36_640_296,
    # its authors' and timm's
    "resnest50": 27_483_240,
    "resnest101": 48_275_016,
    # Hugging Face
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
    "llama-1b": 1_235_814_400,
    "mamba-130m": 129_135_360,
    "diffusion-unet": 113_673_219,  # google/ddpm-celebahq-256
    "albert-base": 11_221_680,  # AlbertForMaskedLM of albert-base-v2, without the pooler
}
# The same count for a variant that was published.
VARIANTS = [
    ("unet", {"channels": 1}, 31_030_658),  # Ronneberger's: one channel in, two classes
    ("segnet", {"classes": 19}, 29_453_971),  # pytorchcv's, for Cityscapes
    ("fcn8", {"hidden": 4096}, 134_489_759),  # VGG-16's features, fc6 and fc7, three scores, three deconvolutions
    ("bert-base", {"classes": 2}, 109_482_240 + 2 * 768 + 2),  # bert-base-uncased and a classifier
    ("bert-large", {"classes": 2}, 335_141_888 + 2 * 1024 + 2),
    ("rotor-toy", {}, sum((a + 1) * b for a, b in pairwise((200, 250, 280, 290, 280, 250, 200)))),
    ("mlp", {"layers": 1, "hidden": 100}, 79_510),  # 784-100-10
    ("cnn", {"layers": 1, "width": 8}, 3 * 9 * 8 + 2 * 8 + 8 * 10 + 10),
]


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    net, _ = describe(name)
    assert net.count_parameters() == PUBLISHED[name]


@pytest.mark.parametrize("name, settings, count", VARIANTS)
def test_variants_have_their_published_counts(name: str, settings: dict[str, int], count: int) -> None:
    net, _ = describe(name, **settings)
    assert net.count_parameters() == count


def test_no_network_goes_uncounted() -> None:
    assert {*PUBLISHED, *(name for name, _, _ in VARIANTS)} == set(ZOO)
