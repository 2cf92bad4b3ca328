"""The other side of bench/encoder: training steps of the same networks in PyTorch eager.

    torch_steps.py THREADS BATCH [DEVICE]

Reads lines "n steps" for the paper's encoder, or "network:n steps", and answers each with the milliseconds of so many steps (after some that are not
counted). A step draws a batch, and does what a PyTorch user writes: forward, MSE, backward, AdamW, loss.item().
"""
import os, pathlib, sys, time
import torch, torch.nn as nn

class Encoder(nn.Module):
    def __init__(self, n, d=128, heads=2, layers=2, ff=128):
        super().__init__()
        self.tok, self.pos = nn.Embedding(2, d // 2), nn.Embedding(n, d // 2)
        layer = nn.TransformerEncoderLayer(d, heads, ff, 0.0, "relu", batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d, 1)
    def forward(self, x):
        positions = self.pos(torch.arange(x.size(1), device=x.device)).expand(x.size(0), -1, -1)
        return self.head(self.enc(torch.cat([self.tok(x), positions], -1))[:, -1]).squeeze(-1)

def network(name, n):
    """The networks of tests/golden, as wide and deep as the encoder."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/golden"))
    from modules import Mlp, Recurrent, StateSpace, Transformer
    d, layers = 128, 2
    if name == "mlp":
        return Mlp(n, d, layers, "relu")
    if name in ("lstm", "gru"):
        return Recurrent(n, name, d, layers, "last")
    if name == "ssm":
        return StateSpace(n, d, layers, d, "post", "relu", "last", signed=False)
    return Transformer(n, d, layers, 2, d, "concat", name, "learned", n, "full", "last", "relu")

threads, batch = int(sys.argv[1]), int(sys.argv[2])
device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
uncounted = 2 if device == "cpu" else 20
torch.set_num_threads(threads)
trainings = {}

def training(what):
    if what not in trainings:
        torch.manual_seed(0)
        *name, n = what.split(":")
        model = (network(name[0], int(n)) if name else Encoder(int(n))).to(device)
        trainings[what] = int(n), model, torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.1), nn.MSELoss()
    return trainings[what]

def step(what):
    n, model, optimiser, loss_of = training(what)
    started = time.perf_counter()
    x = torch.randint(0, 2, (batch, n), device=device)
    loss = loss_of(model(x).view(-1), (x.sum(-1) % 2).float())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    loss.item()
    return (time.perf_counter() - started) * 1e3

allocator = os.environ.get("ALLOCATOR", "glibc malloc")
where = f"{threads} threads, {allocator}" if device == "cpu" else torch.cuda.get_device_name()
print(f"torch {torch.__version__} eager, {where}", flush=True)
for line in sys.stdin:
    what, steps = line.split()
    for _ in range(uncounted):
        step(what)
    print(*(f"{step(what):.3f}" for _ in range(int(steps))), flush=True)
