"""Write the golden files of pudica-nn's tests: what PyTorch computes with given weights.

    python3 -m venv venv && venv/bin/pip install torch==2.11.0 numpy safetensors
    venv/bin/python tests/golden/write.py

Each file holds: weight.* (f32; far from the defaults, so that no bias is zero and no LayerNorm trivial), strings and labels,
and, computed in f64 with those weights: outputs, grad.* of the mean squared error, norm.* (variance of every LayerNorm's input
over features, biased, in order of application; of an RMSNorm's the mean square), decoded (the encoder-decoder writing its own scratchpad). losses are the first ten
of torch.optim.AdamW in f32 from the same weights, on the batches of trajectory_strings.
"""
import json
import pathlib

import torch
from safetensors.torch import load_file, save_file

from modules import Encoder, EncoderDecoder

HERE = pathlib.Path(__file__).parent
ADAMW = dict(lr=1e-2, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)

CASES = {
    "encoder-concat-1": (Encoder, dict(n=6, d=12, layers=1, heads=2, ff=10, embed="concat")),
    "encoder-concat-2": (Encoder, dict(n=6, d=16, layers=2, heads=2, ff=16, embed="concat")),
    "encoder-add-3": (Encoder, dict(n=5, d=9, layers=3, heads=1, ff=12, embed="add")),
    "encoder-add-2": (Encoder, dict(n=7, d=12, layers=2, heads=3, ff=12, embed="add")),
    "encoder-decoder-concat-2": (EncoderDecoder, dict(n=6, d=12, layers=2, heads=2, ff=10, embed="concat")),
    "encoder-decoder-add-1": (EncoderDecoder, dict(n=5, d=8, layers=1, heads=1, ff=8, embed="add")),
}


def labels_of(module, x):
    parities = (x.cumsum(1) % 2).float()
    return parities if isinstance(module, EncoderDecoder) else parities[:, -1:]


def write(name, make, config, seed):
    torch.manual_seed(seed)
    module = make(**config).train()  # training mode: no inference shortcuts; there is no dropout
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    weights = {key: value.clone() for key, value in module.state_dict().items()}
    file = {f"weight.{key}": value for key, value in weights.items()}

    strings = torch.randint(0, 2, (8, config["n"]))
    labels = labels_of(module, strings)
    module.double()
    norms = []
    for key, layer in module.named_modules():
        if isinstance(layer, (torch.nn.LayerNorm, torch.nn.RMSNorm)):
            layer.register_forward_pre_hook(lambda norm, inputs, key=key: norms.append((key, norm, inputs[0].detach())))
    outputs = module(strings)
    ((outputs - labels.double()) ** 2).mean().backward()
    file |= {"strings": strings.byte(), "labels": labels, "outputs": outputs.detach().clone()}
    file |= {f"grad.{key}": parameter.grad.clone() for key, parameter in module.named_parameters()}
    for index, (key, norm, inputs) in enumerate(norms):
        rms = isinstance(norm, torch.nn.RMSNorm)
        file[f"norm.{index}.{key}"] = inputs.square().mean(-1) if rms else inputs.var(-1, unbiased=False)
    if isinstance(module, EncoderDecoder):
        with torch.no_grad():
            file["decoded"] = module.decode(strings)

    trained = make(**config).train()
    trained.load_state_dict(weights)
    optimiser = torch.optim.AdamW(trained.parameters(), **ADAMW)
    batches = torch.randint(0, 2, (10, 16, config["n"]))
    losses = []
    for batch in batches:
        loss = ((trained(batch) - labels_of(trained, batch)) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    file |= {"trajectory_strings": batches.byte(), "losses": torch.tensor(losses)}

    metadata = {"torch": torch.__version__, "config": json.dumps(config), "adamw": json.dumps(ADAMW)}
    metadata["names"] = json.dumps([[key, list(value.shape)] for key, value in weights.items()])
    save_file({key: value.contiguous() for key, value in file.items()}, HERE / f"{name}.safetensors", metadata)
    print(name, "losses", [round(loss, 6) for loss in losses])


def load_ours():
    """PyTorch loads what pudica writes. The Rust tests check that these files are what pudica writes, to the byte."""
    for name, make, config in [
        ("pudica-encoder", Encoder, dict(n=4, d=8, layers=2, heads=2, ff=8, embed="concat")),
        ("pudica-encoder-decoder", EncoderDecoder, dict(n=4, d=8, layers=2, heads=2, ff=8, embed="concat")),
    ]:
        path = HERE / f"{name}.safetensors"
        if not path.exists():
            print(f"{path} is missing: run the Rust test `saved_weights_are_the_files_pytorch_loads` with PUDICA_WRITE=1")
            continue
        make(**config).load_state_dict(load_file(path), strict=True)
        print(f"{name}: load_state_dict accepts it")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for seed, (name, (make, config)) in enumerate(CASES.items()):
        write(name, make, config, seed)
    load_ours()
