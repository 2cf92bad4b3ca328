"""The checkpoints of moved.py once more, in PyTorch and without pudica: noise on each square of 4 x 4 pixels (MNIST: 7 x 7), on the grid and moved.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python results/vasudeva/as-released/moved_torch.py DATA      (the folder that PUDICA_DATA names)

Squares of the grid count by the part of them that moved squares cover, as in moved.py. The images are the first ones of the test set, not a sample.
"""
import gzip
import pathlib
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/golden"))
from foreign import CifarResNet, ResidualVit, TorchVit  # noqa: E402

data = pathlib.Path(sys.argv[1])


def cifar10():
    raw = np.frombuffer(gzip.open(data / "cifar10/test_batch.bin.gz").read(), np.uint8)
    return raw.reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32)


def mnist():
    return np.frombuffer(gzip.open(data / "mnist/t10k-images-idx3-ubyte.gz").read()[16:], np.uint8).reshape(-1, 1, 28, 28)


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
CASES = [
    ("resnet20-12fca82f.th", CifarResNet(3, 10, 16, 3), cifar10, IMAGENET, 4, 2, 1.0, 1),
    ("vit_cifar10_smmk47.pth", TorchVit(3, 32, 10, 4, 128, 6, 8, 256), cifar10, CIFAR, 4, 2, 1.0, 1),
    ("vit_mnist_GauravPBhagwat.pth", ResidualVit(1, 28, 10, 7, 64, 6, 8, 128, 128), mnist, ((0.1307,), (0.3081,)), 7, 3, 5.0, 5),
]
COUNT = 500
torch.manual_seed(0)
for file, module, read, (mean, std), side, offset, variance, draws in CASES:
    state = torch.load(data / "models" / file, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    module.load_state_dict({name.removeprefix("module."): value for name, value in state.items()}, strict="resnet" not in file)
    module.eval()
    shift, scale = (torch.tensor(x).reshape(1, -1, 1, 1) for x in (mean, std))
    images = (torch.tensor(read()[:COUNT]) / 255 - shift) / scale
    width = images.shape[-1]

    @torch.no_grad()
    def changed(top, left):
        """Of each image, how often its answer changes."""
        times = torch.zeros(COUNT)
        for _ in range(draws):
            touched = images.clone()
            touched[:, :, top:top + side, left:left + side] += variance**0.5 * torch.randn(COUNT, images.shape[1], side, side)
            times += (module(touched).argmax(1) != before).float()
        return times / draws

    with torch.no_grad():
        before = module(images).argmax(1)
    part = lambda at: {0: (side - offset) / side, width - side: offset / side}.get(at, 1.0)
    corners = range(0, width, side)
    grid = sum(part(top) * part(left) * changed(top, left) for top in corners for left in corners)
    grid /= sum(part(top) * part(left) for top in corners for left in corners)
    corners = range(offset, width - side + 1, side)
    moved = sum(changed(top, left) for top in corners for left in corners) / len(corners) ** 2
    errors = [float(of.std()) / COUNT**0.5 for of in (grid, moved, moved - grid)]
    print(f"{file}: on the grid {grid.mean():.4f} ± {errors[0]:.4f}, moved {moved.mean():.4f} ± {errors[1]:.4f}, difference {(moved - grid).mean():.4f} ± {errors[2]:.4f},"
          f" ratio {moved.mean() / grid.mean():.2f}", flush=True)
