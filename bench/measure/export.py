"""python export.py CHECKPOINT.th OUT.onnx: ResNet-20 for CIFAR-10 (option A shortcuts) from its state dict, with a dynamic batch."""
import sys
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.pad = stride, (channels - before) // 2

    def forward(self, x):
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:  # every second pixel, channels of zeros on both sides
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(inner + x)


class ResNet(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        stage = lambda before, channels, stride: nn.Sequential(
            *[Block(before if i == 0 else channels, channels, stride if i == 0 else 1) for i in range(blocks)]
        )
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = stage(16, 16, 1), stage(16, 32, 2), stage(32, 64, 2)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


checkpoint, out = sys.argv[1:]
weights = torch.load(checkpoint, map_location="cpu", weights_only=True)["state_dict"]
network = ResNet(3).eval()
network.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})
batch = {0: torch.export.Dim("batch", min=1, max=65536)}
torch.onnx.export(
    network, (torch.zeros(2, 3, 32, 32),), out, input_names=["image"], output_names=["scores"], dynamic_shapes=(batch,), dynamo=True,
    external_data=False,
)
