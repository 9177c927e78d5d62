"""ResNet-50 in PyTorch, its weights named as the zoo names them: the other side of train_step.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

BLOCKS = (3, 4, 6, 3)


class Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or before != 4 * width:
            shortcut = nn.Conv2d(before, 4 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        before = 64
        for stage, blocks in enumerate(BLOCKS):
            width = 64 << stage
            strides = [2 if stage else 1] + [1] * (blocks - 1)
            inputs = [before] + [4 * width] * (blocks - 1)
            setattr(
                self, f"layer{stage + 1}", nn.Sequential(*(Bottleneck(b, width, s) for b, s in zip(inputs, strides)))
            )
            before = 4 * width
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def training_step(feeds: dict[str, np.ndarray], threads: int) -> Callable[[], float]:
    """One step: forward, loss, and the gradients of every parameter."""
    torch.set_num_threads(threads)
    net = ResNet50().train()
    weights = {name: torch.tensor(value) for name, value in feeds.items() if name not in ("input", "labels")}
    unknown = net.load_state_dict(weights, strict=False).unexpected_keys
    assert not unknown, unknown
    images, labels = torch.from_numpy(feeds["input"]), torch.from_numpy(feeds["labels"])

    def step() -> float:
        net.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        return loss.item()

    return step
