"""PyTorch modules of other people's checkpoints, written anew from their descriptions: those of torchvision under its names, the CIFAR
ResNets of He et al. (option A), and two ViTs. `checkpoints.py` and `published.py` use them."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CifarBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.stride, self.more = stride, outputs - inputs

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride != 1 or self.more:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.more // 2, self.more // 2))
        return F.relu(y + x)


class CifarResNet(nn.Module):
    def __init__(self, channels, classes, width, blocks):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        inputs = width
        for stage in range(3):
            layers = []
            for block in range(blocks):
                layers.append(CifarBlock(inputs, width << stage, 2 if stage and not block else 1))
                inputs = width << stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.linear(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class TorchvisionBlock(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        kernels = [(1, 1), (3, stride), (1, 1)] if bottleneck else [(3, stride), (3, 1)]
        outputs = 4 * width if bottleneck else width
        widths = [inputs] + [width] * (len(kernels) - 1) + [outputs]
        self.depth, self.outputs = len(kernels), outputs
        for at, (kernel, own) in enumerate(kernels):
            setattr(self, f"conv{at + 1}", nn.Conv2d(widths[at], widths[at + 1], kernel, own, kernel // 2, bias=False))
            setattr(self, f"bn{at + 1}", nn.BatchNorm2d(widths[at + 1]))
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = x
        for at in range(1, self.depth + 1):
            y = getattr(self, f"bn{at}")(getattr(self, f"conv{at}")(y))
            y = F.relu(y) if at < self.depth else y
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchvisionResNet(nn.Module):
    def __init__(self, channels, classes, width, blocks, bottleneck):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        inputs = width
        for stage, count in enumerate(blocks):
            layers = []
            for block in range(count):
                layers.append(TorchvisionBlock(inputs, width << stage, 2 if stage and not block else 1, bottleneck))
                inputs = layers[-1].outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))


class TorchVit(nn.Module):
    """nn.TransformerEncoder with its defaults between a convolution and a head."""
    def __init__(self, channels, side, classes, patch, dim, depth, heads, mlp):
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, dim) * 0.02)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(channels, dim, patch, patch)})
        layer = nn.TransformerEncoderLayer(dim, heads, mlp, dropout=0.0, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, x):
        x = self.patch_embed["proj"](x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.mlp_head(self.transformer(x)[:, 0])


class Inner(nn.Module):
    """What a name holds, under .fn or .net."""
    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class ResidualVit(nn.Module):
    """Pre-norm, scores divided by the root of the whole width, no bias of queries, keys and values."""
    def __init__(self, channels, side, classes, patch, dim, depth, heads, mlp, head):
        super().__init__()
        self.patch, self.heads = patch, heads
        self.pos_embedding = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, dim))
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.patch_to_embedding = nn.Linear(channels * patch * patch, dim)
        attention = lambda: Inner(to_qkv=nn.Linear(dim, 3 * dim, bias=False), to_out=nn.Linear(dim, dim))
        forward = lambda: Inner(net=nn.Sequential(nn.Linear(dim, mlp), nn.GELU(), nn.Linear(mlp, dim)))
        part = lambda inner: Inner(fn=Inner(norm=nn.LayerNorm(dim), fn=inner))
        self.transformer = Inner(layers=nn.ModuleList(
            nn.ModuleList([part(attention()), part(forward())]) for _ in range(depth)))
        self.mlp_head = nn.Sequential(nn.Linear(dim, head), nn.GELU(), nn.Linear(head, classes))

    def attend(self, parts, x):
        batch, tokens, dim = x.shape
        q, k, v = parts.to_qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(2, 3) * dim ** -0.5).softmax(-1)
        return parts.to_out((weights @ v).transpose(1, 2).reshape(batch, tokens, dim))

    def forward(self, x):
        batch, channels, side, _ = x.shape
        across, patch = side // self.patch, self.patch
        x = x.reshape(batch, channels, across, patch, across, patch).permute(0, 2, 4, 3, 5, 1).reshape(batch, across ** 2, -1)
        x = self.patch_to_embedding(x)
        x = torch.cat([self.cls_token.expand(batch, -1, -1), x], 1) + self.pos_embedding
        for attention, forward in self.transformer.layers:
            x = x + self.attend(attention.fn.fn, attention.fn.norm(x))
            x = x + forward.fn.fn.net(forward.fn.norm(x))
        return self.mlp_head(x[:, 0])
