"""Count what the published checkpoints tell rightly, in PyTorch: the numbers in crates/model/tests/real_checkpoints.rs.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tests/golden/published.py DATA [FILE ..]      (the folder that PUDICA_DATA names)
"""
import gzip
import pathlib
import sys

import numpy as np
import torch

from foreign import CifarResNet, ResidualVit, TorchVit

data = pathlib.Path(sys.argv[1])


def cifar10():
    raw = np.frombuffer(gzip.open(data / "cifar10" / "test_batch.bin.gz").read(), np.uint8).reshape(-1, 3073)
    return raw[:, 1:].reshape(-1, 3, 32, 32), raw[:, 0]


def mnist():
    images = gzip.open(data / "mnist" / "t10k-images-idx3-ubyte.gz").read()[16:]
    labels = gzip.open(data / "mnist" / "t10k-labels-idx1-ubyte.gz").read()[8:]
    return np.frombuffer(images, np.uint8).reshape(-1, 1, 28, 28), np.frombuffer(labels, np.uint8)


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
ONLY = sys.argv[2:]
CASES = [
    ("resnet20-12fca82f.th", CifarResNet(3, 10, 16, 3), cifar10, IMAGENET, 1000),
    ("resnet44-014dd654.th", CifarResNet(3, 10, 16, 7), cifar10, IMAGENET, 1000),
    ("vit_cifar10_smmk47.pth", TorchVit(3, 32, 10, 4, 128, 6, 8, 256), cifar10, CIFAR, 1000),
    ("vit_mnist_GauravPBhagwat.pth", ResidualVit(1, 28, 10, 7, 64, 6, 8, 128, 128), mnist, ((0.1307,), (0.3081,)), 2000),
]
for file, module, read, (mean, std), some in CASES:
    if ONLY and file not in ONLY:
        continue
    state = torch.load(data / "models" / file, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    module.load_state_dict({name.removeprefix("module."): value for name, value in state.items()}, strict="resnet" not in file)
    module.eval()
    images, labels = read()
    shift, scale = (torch.tensor(x).reshape(1, -1, 1, 1) for x in (mean, std))
    right = []
    with torch.no_grad():
        for start in range(0, len(images), 500):
            x = (torch.tensor(images[start:start + 500]) / 255 - shift) / scale
            right.append((module(x).argmax(1).numpy() == labels[start:start + 500]))
    right = np.concatenate(right)
    print(f"{file}: {right[:some].sum()} of the first {some}, {right.sum()} of {len(right)}", flush=True)
