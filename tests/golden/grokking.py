"""Writes grokking.safetensors: the one-layer transformer of modular arithmetic in plain PyTorch (float64), its scores, loss and gradients
for two seeds, five epochs of AdamW, and what noise on the embeddings does.

    python -m venv venv && venv/bin/pip install torch==2.11.0 safetensors numpy
    venv/bin/python tests/golden/grokking.py
"""

import math
import pathlib

import torch
from safetensors.torch import save_file

torch.manual_seed(0)
P, D, HEADS, MLP, PAIRS, NETWORKS = 7, 8, 2, 12, 9, 2
SHAPES = {
    "embed.weight": (P + 1, D),
    "pos.weight": (3, D),
    "attention.query.weight": (D, D),
    "attention.key.weight": (D, D),
    "attention.value.weight": (D, D),
    "attention.out.weight": (D, D),
    "mlp.up.weight": (MLP, D),
    "mlp.down.weight": (D, MLP),
    "unembed.weight": (P, D),
}


def scores(w, a, b, noise=None):
    tokens = torch.stack([a, b, torch.full_like(a, P)], dim=1)
    embedded = w["embed.weight"][tokens]
    if noise is not None:
        embedded = embedded + torch.cat([noise, torch.zeros_like(noise[:, :1])], dim=1)
    x = embedded + w["pos.weight"]
    split = lambda name: (x @ w[f"attention.{name}.weight"].T).view(-1, 3, HEADS, D // HEADS).transpose(1, 2)
    q, k, v = split("query"), split("key"), split("value")
    attention = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(D // HEADS), dim=-1)
    x = x + (attention @ v).transpose(1, 2).reshape(-1, 3, D) @ w["attention.out.weight"].T
    x = x + torch.relu(x @ w["mlp.up.weight"].T) @ w["mlp.down.weight"].T
    return (x @ w["unembed.weight"].T)[:, 2]


golden = {}
for network in range(NETWORKS):
    # Weights that f32 holds exactly, large enough for attention and scores to be far from uniform.
    w = {name: torch.randn(shape).double().requires_grad_() for name, shape in SHAPES.items()}
    pairs = torch.randperm(P * P)
    a, b = pairs // P, pairs % P
    train, test = slice(0, PAIRS), slice(PAIRS, None)
    labels = (a + b) % P
    save = lambda name, value: golden.update({f"{network}.{name}": value.detach().clone().contiguous()})
    save("a", a.float())
    save("b", b.float())
    for name, value in w.items():
        save(f"weights.{name}", value.float())
    noise = torch.randn(PAIRS, 2, D).double()
    save("noise", noise)
    save("noisy", scores(w, a[train], b[train], noise))
    optimiser = torch.optim.AdamW(w.values(), lr=1e-2, betas=(0.9, 0.98), weight_decay=1.0)
    losses, tests, norms = [], [], []
    for epoch in range(6):
        found = scores(w, a[train], b[train])
        loss = torch.nn.functional.cross_entropy(found, labels[train])
        optimiser.zero_grad()
        loss.backward()
        if epoch == 0:
            save("scores", found)
            for name, value in w.items():
                save(f"gradients.{name}", value.grad)
        losses.append(loss.item())
        with torch.no_grad():
            tests.append(torch.nn.functional.cross_entropy(scores(w, a[test], b[test]), labels[test]).item())
            norms.append(math.sqrt(sum((value**2).sum().item() for value in w.values())))
        optimiser.step()
    save("losses", torch.tensor(losses, dtype=torch.float64))
    save("tests", torch.tensor(tests, dtype=torch.float64))
    save("norms", torch.tensor(norms, dtype=torch.float64))
save_file(golden, pathlib.Path(__file__).with_suffix(".safetensors"))
