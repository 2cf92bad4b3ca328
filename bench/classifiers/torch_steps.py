"""The other side of bench/classifiers: training steps of the same networks in PyTorch, eager or through torch.compile.

    torch_steps.py DEVICE THREADS [tf32]

Reads lines "model steps" or "model:compiled steps" and answers each with the milliseconds of one step, the mean of so many. A step does what a PyTorch user writes:
forward, cross-entropy, backward, optimiser; the device is waited for at the end. ViT-small is vit-pytorch's; RoBERTa is a stack of
nn.TransformerEncoderLayer, the LSTM is nn.LSTM (cuDNN on a GPU).
"""
import os, sys, time
import torch, torch.nn as nn, torch.nn.functional as F

device, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
torch.backends.cuda.matmul.allow_tf32 = "tf32" in sys.argv


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        blocks = [[Block(a, b, 1 + (a != b)), Block(b, b, 1)] for a, b in zip(widths, widths[1:])]
        self.blocks, self.linear = nn.Sequential(*sum(blocks, [])), nn.Linear(512, 10)

    def forward(self, x):
        return self.linear(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


class Roberta(nn.Module):
    def __init__(self, vocabulary=50265, d=256, length=128):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(length + 2, d)
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(d, 8, 4 * d, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(d, d), nn.Tanh(), nn.Dropout(0.1), nn.Linear(d, 2))

    def forward(self, ids):
        places = torch.arange(2, 2 + ids.shape[1], device=ids.device)
        x = self.dropout(self.norm(self.words(ids) + self.positions(places)))
        return self.head(self.layers(x)[:, 0])


class Lstm(nn.Module):
    def __init__(self, vocabulary=50265, d=256):
        super().__init__()
        self.words, self.norm, self.dropout = nn.Embedding(vocabulary, d), nn.LayerNorm(d), nn.Dropout(0.1)
        self.lstm, self.head = nn.LSTM(d, d, 4, batch_first=True, dropout=0.1), nn.Linear(d, 2)

    def forward(self, ids):
        return self.head(self.lstm(self.dropout(self.norm(self.words(ids))))[0][:, -1])


def vit_small():
    from vit_pytorch.vit_for_small_dataset import ViT
    return ViT(image_size=32, patch_size=4, num_classes=10, dim=64, depth=8, heads=32, mlp_dim=256, dropout=0.1, emb_dropout=0.1)


MODELS = {"vit-small": vit_small, "resnet18": ResNet18, "roberta": Roberta, "lstm": Lstm}
trainings = {}


def training(name):
    if name not in trainings:
        torch.manual_seed(0)
        kind, _, compiled = name.partition(":")
        model = MODELS[kind]().to(device).train()
        # Both as fast as PyTorch has them: one kernel for the optimiser, recorded launches.
        fused = {"fused": True} if compiled else {}
        if kind in ("roberta", "lstm"):
            optimiser = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=1e-4, **fused)
            data = torch.randint(0, 50265, (32, 128)), torch.randint(0, 2, (32,))
        else:
            optimiser = torch.optim.SGD(model.parameters(), 0.1, **fused)
            data = torch.randn(100, 3, 32, 32), torch.randint(0, 10, (100,))
        if compiled:
            model = torch.compile(model, mode="reduce-overhead")
        trainings[name] = model, optimiser, data
    return trainings[name]


def steps(name, count):
    model, optimiser, (x, y) = training(name)
    for _ in range(count):
        inputs, labels = x.to(device), y.to(device)
        loss = F.cross_entropy(model(inputs), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    loss.item()


where = f"{threads} threads, {os.environ.get('ALLOCATOR', 'glibc malloc')}" if device == "cpu" else torch.cuda.get_device_name()
print(f"torch {torch.__version__}, {where}", flush=True)
for line in sys.stdin:
    name, count = line.split()
    if name not in trainings:
        steps(name, int(count) + 10)
    started = time.perf_counter()
    steps(name, int(count))
    print(f"{(time.perf_counter() - started) * 1e3 / int(count):.3f}", flush=True)
