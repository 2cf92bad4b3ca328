"""PyTorch runs the transformers that `pudica construct` builds by hand.

    venv/bin/python tests/golden/constructions.py

built-NAME.safetensors is what `pudica construct NAME --n 8 --save` writes (the Rust test `constructions.rs` checks that to the byte,
and writes the files with PUDICA_WRITE=1). This script loads each with load_state_dict(strict=True), asserts that PyTorch's encoder
computes the function on all 256 strings in f32 and f64, and stores the f64 outputs in built-NAME-outputs.safetensors.
"""
import pathlib

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from modules import Encoder

HERE = pathlib.Path(__file__).parent
N = 8
FUNCTIONS = {
    "parity": (lambda x: x.sum(1) % 2, dict(layers=2)),
    "majority": (lambda x: 2 * x.sum(1) > N, dict(layers=1)),
    "first": (lambda x: x[:, 0], dict(layers=1)),
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    x = torch.arange(2**N)[:, None] >> torch.arange(N - 1, -1, -1) & 1
    for name, (function, shape) in FUNCTIONS.items():
        path = HERE / f"built-{name}.safetensors"
        heads = int(safe_open(path, "pt").metadata()["heads"])
        module = Encoder(n=N, d=32, heads=heads, ff=32, embed="concat", **shape).eval()
        module.load_state_dict(load_file(path), strict=True)
        for dtype in (torch.float32, torch.float64):
            with torch.no_grad():
                outputs = module.to(dtype)(x).squeeze(1)
            error = (outputs - function(x).to(dtype)).abs().max().item()
            assert error < 1e-3, (name, dtype, error)
            print(f"{name}: PyTorch is right on all {2**N} strings in {dtype}, worst error {error:.2e}")
        save_file({"outputs": outputs.contiguous()}, HERE / f"built-{name}-outputs.safetensors", {"torch": torch.__version__})
