"""Write the golden files of pudica-nn's image networks: what PyTorch computes with given weights.

    python3 -m venv venv && venv/bin/pip install torch==2.11.0 vit-pytorch==1.26.11 numpy safetensors
    venv/bin/python tests/golden/vision.py

Each file holds: weight.* (f32 parameters and running statistics, far from the defaults), images, labels, and, computed in f64 with those
weights: outputs, loss and grad.* in evaluation mode; for networks with BatchNorm also train_loss, train_grad.* in training mode and
running.* (the running statistics after that pass). vision-steps has the weights after three steps of torch.optim's optimisers.
"""
import json
import pathlib
from importlib.metadata import version

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from vit_pytorch.simple_vit import SimpleViT
from vit_pytorch.vit_for_small_dataset import LSA, ViT

HERE = pathlib.Path(__file__).parent


class Mlp(nn.Module):
    def __init__(self, channels, side, classes, hidden, activation):
        super().__init__()
        widths = [channels * side * side, *hidden, classes]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.activation = activation

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


class Cnn(nn.Module):
    def __init__(self, channels, side, classes, width, hidden):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, width, 3), nn.Conv2d(width, width, 3)
        self.fc1, self.fc2 = nn.Linear(width * ((side - 4) // 2) ** 2, hidden), nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.leaky_relu(self.conv2(F.leaky_relu(self.conv1(x))))
        return self.fc2(F.leaky_relu(self.fc1(F.max_pool2d(x, 2).flatten(1))))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, channels, classes, width, blocks):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.stages, inputs = [], width
        for stage, count in enumerate(blocks):
            outputs, layers = width * 2**stage, []
            for at in range(count):
                layers.append(BasicBlock(inputs, outputs, 2 if stage > 0 and at == 0 else 1))
                inputs = outputs
            self.stages.append(nn.Sequential(*layers))
            setattr(self, f"layer{stage + 1}", self.stages[-1])
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for stage in self.stages:
            x = stage(x)
        return self.linear(x.mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([self.conv2(F.relu(self.bn2(self.conv1(F.relu(self.bn1(x)))))), x], 1)


class Transition(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.bn, self.conv = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x):
        return F.avg_pool2d(self.conv(F.relu(self.bn(x))), 2)


class DenseNet(nn.Module):
    def __init__(self, channels, classes, growth, blocks):
        super().__init__()
        width = 2 * growth
        self.conv1, self.parts = nn.Conv2d(channels, width, 3, padding=1, bias=False), []
        for stage, count in enumerate(blocks, 1):
            layers = [Bottleneck(width + at * growth, growth) for at in range(count)]
            self.parts.append(nn.Sequential(*layers))
            setattr(self, f"dense{stage}", self.parts[-1])
            width += count * growth
            if stage < len(blocks):
                self.parts.append(Transition(width, width // 2))
                setattr(self, f"trans{stage}", self.parts[-1])
                width //= 2
        self.bn, self.linear = nn.BatchNorm2d(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.conv1(x)
        for part in self.parts:
            x = part(x)
        return self.linear(F.relu(self.bn(x)).mean((2, 3)))


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


def conv_mixer(channels, classes, dim, depth, kernel, patch):
    def block():
        own = nn.Sequential(nn.Conv2d(dim, dim, kernel, groups=dim, padding="same"), nn.GELU(), nn.BatchNorm2d(dim))
        return nn.Sequential(Residual(own), nn.Conv2d(dim, dim, 1), nn.GELU(), nn.BatchNorm2d(dim))

    stem = [nn.Conv2d(channels, dim, patch, patch), nn.GELU(), nn.BatchNorm2d(dim)]
    head = [nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(dim, classes)]
    return nn.Sequential(*stem, *[block() for _ in range(depth)], *head)


def vit_small(attention):
    vit = ViT(image_size=6, patch_size=3, num_classes=3, dim=8, depth=2, heads=2, mlp_dim=7, channels=2, dim_head=5)
    if attention == "relu":
        for layer in vit.modules():
            if isinstance(layer, LSA):
                layer.attend = nn.ReLU()  # of the masked diagonal, a huge negative number: 0
    return vit


def vit_simple():
    vit = SimpleViT(image_size=6, patch_size=2, num_classes=3, dim=12, depth=2, heads=3, mlp_dim=7, channels=2, dim_head=4)
    # vit-pytorch computes its fixed positions in f32, whose last digit depends on the library: the same in f64.
    y, x = torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij")
    frequencies = 10000.0 ** -(torch.arange(3, dtype=torch.float64) / 2)
    x, y = x.flatten()[:, None] * frequencies, y.flatten()[:, None] * frequencies
    positions = torch.cat((x.sin(), x.cos(), y.sin(), y.cos()), 1)
    assert torch.allclose(positions.float(), vit.pos_embedding, atol=1e-6)
    vit.pos_embedding = positions
    return vit


# name: (module, channels, side, classes)
CASES = {
    "mlp": (lambda: Mlp(1, 5, 4, [7, 6], F.leaky_relu), 1, 5, 4),
    "mlp-sigmoid": (lambda: Mlp(2, 4, 3, [6], torch.sigmoid), 2, 4, 3),
    "cnn": (lambda: Cnn(2, 9, 4, width=3, hidden=5), 2, 9, 4),
    "vit-small": (lambda: vit_small("softmax"), 2, 6, 3),
    "vit-small-relu": (lambda: vit_small("relu"), 2, 6, 3),
    "vit-simple": (vit_simple, 2, 6, 3),
    "resnet18": (lambda: ResNet(3, 4, width=3, blocks=[1, 2]), 3, 8, 4),
    "densenet121": (lambda: DenseNet(3, 4, growth=2, blocks=[2, 1, 2]), 3, 8, 4),
    "convmixer": (lambda: conv_mixer(3, 4, dim=6, depth=2, kernel=3, patch=2), 3, 8, 4),
}


def disturbed(make, seed):
    """A module whose biases, norms and running statistics are not those it starts with."""
    torch.manual_seed(seed)
    module = make()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer += 0.3 * torch.randn_like(buffer)
            if name.endswith("running_var"):
                buffer *= 0.5 + torch.rand_like(buffer)
    return module


def state(module):
    """Without the counter of batches, which nothing is computed from."""
    return {key: value.clone() for key, value in module.state_dict().items() if not key.endswith("num_batches_tracked")}


def batch(channels, side, classes, count=6):
    return torch.randn(count, channels, side, side), torch.randint(0, classes, (count,))


def gradients(module, images, labels):
    module.zero_grad()
    outputs = module(images.double())
    loss = F.cross_entropy(outputs, labels)
    loss.backward()
    return outputs.detach(), loss.detach(), {key: p.grad.clone() for key, p in module.named_parameters()}


def save(name, file, metadata):
    metadata = {"torch": torch.__version__, "vit-pytorch": version("vit-pytorch")} | metadata
    save_file({key: value.contiguous() for key, value in file.items()}, HERE / f"vision-{name}.safetensors", metadata)
    print(name, sum(value.numel() * value.element_size() for value in file.values()), "bytes")


def write(name, make, channels, side, classes, seed):
    module = disturbed(make, seed)
    weights = state(module)
    file = {f"weight.{key}": value for key, value in weights.items()}
    images, labels = batch(channels, side, classes)
    module.double()
    outputs, loss, grads = gradients(module.eval(), images, labels)
    file |= {"images": images, "labels": labels.byte(), "outputs": outputs, "loss": loss}
    file |= {f"grad.{key}": value for key, value in grads.items()}
    if any(isinstance(layer, nn.BatchNorm2d) for layer in module.modules()):
        _, loss, grads = gradients(module.train(), images, labels)
        file |= {"train_loss": loss} | {f"train_grad.{key}": value for key, value in grads.items()}
        file |= {f"running.{key}": value for key, value in state(module).items() if "running" in key}
    names = json.dumps([[key, list(value.shape)] for key, value in module.named_parameters()])
    save(name, file, {"names": names})


OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.002, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.02),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.002, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.5),
}


def write_steps(seed):
    """Three steps of each optimiser in f64, on a network with BatchNorm."""
    make, channels, side, classes = CASES["convmixer"]
    start = state(disturbed(make, seed))
    file = {f"weight.{key}": value for key, value in start.items()}
    batches = [batch(channels, side, classes) for _ in range(3)]
    for at, (images, labels) in enumerate(batches):
        file |= {f"images.{at}": images, f"labels.{at}": labels.byte()}
    for name, optimiser in OPTIMISERS.items():
        module = make()
        module.load_state_dict(start, strict=False)
        module.double().train()
        optimiser = optimiser(module.parameters())
        for images, labels in batches:
            gradients(module, images, labels)
            optimiser.step()
        file |= {f"{name}.{key}": value for key, value in state(module).items()}
    save("steps", file, {})


if __name__ == "__main__":
    torch.set_num_threads(1)
    for seed, (name, (make, *sizes)) in enumerate(CASES.items()):
        write(name, make, *sizes, seed)
    write_steps(100)
