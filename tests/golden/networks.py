"""Write the golden files of the networks on bits beyond the paper's encoder: bits-*.safetensors.

    python3 -m venv venv && venv/bin/pip install torch==2.11.0 numpy safetensors
    venv/bin/python tests/golden/networks.py

What a file holds is said in write.py, which writes them; here also lengths.LENGTH.OFFSET, the outputs in f64 on strings of other lengths (seven,
from the bits of trajectory_strings one after the other) that begin at other positions. The modules are in modules.py: LSTM, GRU, pre-norm, GELU and
RMSNorm are PyTorch's own; rotary attention and the state-space model, which PyTorch has not, are written there step by step.
"""
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from modules import Mlp, Recurrent, StateSpace, Transformer
from write import HERE, write

PLAIN = dict(
    n=5, d=8, layers=2, heads=2, ff=6, embed="concat", norm="post", position="learned", positions=5, attention="full",
    read="last", activation="relu",
)
STATES = dict(n=5, d=6, layers=2, ff=7, norm="post", activation="relu", read="last", signed=False)
CASES = {
    "bits-mlp": (Mlp, dict(n=5, d=7, layers=2, activation="relu")),
    "bits-mlp-gelu": (Mlp, dict(n=6, d=5, layers=3, activation="gelu")),
    "bits-lstm": (Recurrent, dict(n=6, cell="lstm", d=5, layers=2, read="last")),
    "bits-lstm-mean": (Recurrent, dict(n=5, cell="lstm", d=4, layers=1, read="mean")),
    "bits-gru": (Recurrent, dict(n=6, cell="gru", d=5, layers=2, read="last")),
    "bits-gru-mean": (Recurrent, dict(n=5, cell="gru", d=4, layers=1, read="mean")),
    "bits-ssm": (StateSpace, STATES),
    "bits-ssm-signed": (StateSpace, STATES | dict(norm="pre", activation="gelu", read="mean", signed=True)),
    "bits-ssm-none": (StateSpace, STATES | dict(norm="none", layers=1)),
    "bits-pre": (Transformer, PLAIN | dict(norm="pre", activation="gelu")),
    "bits-rms": (Transformer, PLAIN | dict(norm="rms", read="mean")),
    "bits-none": (Transformer, PLAIN | dict(norm="none")),
    "bits-mean": (Transformer, PLAIN | dict(read="mean")),
    "bits-sinusoidal": (Transformer, PLAIN | dict(position="sinusoidal", embed="add")),
    "bits-sinusoidal-concat": (Transformer, PLAIN | dict(position="sinusoidal", d=10, attention="causal")),
    "bits-rotary": (Transformer, PLAIN | dict(position="rotary")),
    "bits-rotary-pre": (Transformer, PLAIN | dict(position="rotary", norm="pre", attention="causal", read="mean")),
    "bits-causal": (Transformer, PLAIN | dict(attention="causal", position="none")),
    "bits-positions": (Transformer, PLAIN | dict(positions=9)),
}



def places(make, config):
    """The lengths and offsets at which outputs are compared."""
    if make is Mlp:
        return []
    if make is Transformer and config["position"] == "learned":
        return [(config["n"] - 2, 0)] + ([(5, 4), (9, 0), (3, 2)] if config["positions"] > config["n"] else [])
    return [(config["n"] - 2, 0), (9, 0)]


def add_lengths(name, make, config):
    """What the network of a written file gives for other lengths, in the same file."""
    path = HERE / f"{name}.safetensors"
    file = load_file(path)
    with safe_open(path, "pt") as stored:
        metadata = stored.metadata()
    module = make(**config).train()
    module.load_state_dict({key[len("weight."):]: value for key, value in file.items() if key.startswith("weight.")})
    bits = file["trajectory_strings"].flatten().long()
    for length, offset in places(make, config):
        strings = bits[: 7 * length].view(7, length)
        with torch.no_grad():
            outputs = module.double()(strings, offset) if offset else module.double()(strings)
        file[f"lengths.{length}.{offset}"] = outputs
    save_file(file, path, metadata)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for seed, (name, (make, config)) in enumerate(CASES.items()):
        write(name, make, config, seed)
        add_lengths(name, make, config)
