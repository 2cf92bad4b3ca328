"""The same training step of the paper's scratchpad on the first NVIDIA GPU: PyTorch eager and pudica's engine in one run.

    cargo build --release -p pudica-ensemble --example gpu_time
    python bench/scratchpad/gpu.py [--ours target/release/examples/gpu_time] [--replicas 10] [N ...]

Runs under a Python whose torch sees the GPU; both sides multiply in TF32. Prints one table.
"""
import argparse, re, statistics, subprocess, time

import torch
from torch import nn

D, HEADS, LAYERS, BATCH = 32, 2, 2, 128


class EncDec(nn.Module):
    """As nn/src/networks/encoder_decoder.rs has it."""

    def __init__(s, n):
        super().__init__()
        s.tok, s.pos = nn.Embedding(2, D // 2), nn.Embedding(n, D // 2)
        s.dec_tok, s.dec_pos = nn.Embedding(3, D // 2), nn.Embedding(n, D // 2)
        s.transformer = nn.Transformer(D, HEADS, LAYERS, LAYERS, D, 0.0, "relu", batch_first=True)
        s.head = nn.Linear(D, 1)
        s.register_buffer("places", torch.arange(n))
        s.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(n))

    def forward(s, bits, inputs):
        def embed(token, position, of):
            return torch.cat([token(of), position(s.places).expand(len(of), -1, -1)], -1)

        out = s.transformer(embed(s.tok, s.pos, bits), embed(s.dec_tok, s.dec_pos, inputs), tgt_mask=s.mask, tgt_is_causal=True)
        return s.head(out).squeeze(-1)


def milliseconds(work, device):
    """The median of five times, after one that is not counted."""
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


def eager(n, device, steps=5):
    """(ms per step, ms per forward pass)"""
    model = EncDec(n).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)

    def batch():
        bits = torch.randint(0, 2, (BATCH, n), device=device)
        labels = bits.cumsum(1) % 2
        return bits, torch.cat([torch.full_like(bits[:, :1], 2), labels[:, :-1]], 1), labels.float()

    def train():
        for _ in range(steps):
            bits, inputs, labels = batch()
            loss = ((model(bits, inputs) - labels) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def predict():
        with torch.no_grad():
            for _ in range(steps):
                bits, inputs, _ = batch()
                model(bits, inputs)

    return milliseconds(train, device) / steps, milliseconds(predict, device) / steps


parser = argparse.ArgumentParser()
parser.add_argument("--ours", default="target/release/examples/gpu_time")
parser.add_argument("--replicas", default="10")
parser.add_argument("lengths", nargs="*", default=["39", "250", "1024"])
options = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = True
where = torch.cuda.get_device_name() if device == "cuda" else "no GPU: only PyTorch's side, on the CPU"
print(f"PyTorch: torch {torch.__version__} eager, {where}")
print(f"ours:    {options.replicas} replicas in lock-step; d = {D}, 2 + 2 layers, 2 heads, batch {BATCH}; medians, ms a replica")
print(f"{'n':>5} {'step: PyTorch':>14} {'ours':>9} {'ratio':>7} {'forward: PyTorch':>17} {'ours':>9} {'ratio':>7}", flush=True)
for n in options.lengths:
    theirs = eager(int(n), device)
    if device == "cpu":
        print(f"{n:>5} {theirs[0]:>14.3f} {'':>17} {theirs[1]:>17.3f}", flush=True)
        continue
    said = subprocess.run([options.ours, "scratchpad", f"{n}:{options.replicas}"], check=True, stdout=subprocess.PIPE, text=True).stdout
    step, _, noisy = map(float, re.search(r"step ([\d.]+) ms a replica, forward ([\d.]+), with noise ([\d.]+)", said).groups())
    print(f"{n:>5} {theirs[0]:>14.3f} {step:>9.4f} {theirs[0] / step:>6.1f}x {theirs[1]:>17.3f} {noisy:>9.4f} {theirs[1] / noisy:>6.1f}x", flush=True)
