"""Writes tokens.json: the attention layer of Eq. 3 of Vasudeva et al. (2024) in PyTorch (float64), its gradients, ten steps of SGD.

    python -m venv venv && venv/bin/pip install torch==2.11.0
    venv/bin/python tests/golden/tokens.py
"""

import json
import pathlib

import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
VOCABULARY, LENGTH, WIDTH, ROWS, RATE = 9, 6, 5, 8, 0.5

names = ["query", "key", "value", "head"]
shapes = [(VOCABULARY, WIDTH)] * 3 + [(LENGTH, WIDTH)]
weights = {name: (0.7 * torch.randn(shape)).requires_grad_() for name, shape in zip(names, shapes)}
tokens = torch.randint(VOCABULARY, (ROWS, LENGTH))
labels = torch.randint(2, (ROWS,)) * 2.0 - 1.0
X = torch.nn.functional.one_hot(tokens, VOCABULARY).double()


def phi():
    scores = X @ weights["query"] @ weights["key"].T @ X.transpose(1, 2)
    return (weights["head"] * (torch.softmax(scores, dim=-1) @ X @ weights["value"])).sum((1, 2))


golden = {"vocabulary": VOCABULARY, "length": LENGTH, "width": WIDTH, "rate": RATE}
golden |= {"tokens": tokens.tolist(), "labels": labels.tolist()}
golden["start"] = {name: weight.tolist() for name, weight in weights.items()}
optimiser = torch.optim.SGD(weights.values(), lr=RATE)
losses = []
for step in range(10):
    optimiser.zero_grad()
    outputs = phi()
    loss = torch.nn.functional.softplus(-labels * outputs).mean()
    loss.backward()
    if step == 0:
        golden["outputs"] = outputs.tolist()
        golden["gradients"] = {name: weight.grad.tolist() for name, weight in weights.items()}
    losses.append(loss.item())
    optimiser.step()
golden["losses"] = losses
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(golden) + "\n")
