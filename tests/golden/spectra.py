"""Writes spectra.json: kernels of infinitely wide MLPs by neural-tangents, and eigenvalues on the cube by mpmath.

    python -m venv venv && venv/bin/pip install neural-tangents==0.6.5 jax==0.4.28 jaxlib==0.4.28 tf2jax==0.3.6 "numpy<2" mpmath
    venv/bin/python tests/golden/spectra.py

Both sides are independent of pudica: neural-tangents has its own recursions, and the eigenvalues are sums over binomials with
1,000 digits (pudica's use Krawtchouk numbers and fewer bits).
"""

import json
import math
import os
import pathlib

os.environ["JAX_ENABLE_X64"] = "1"
import jax.numpy as np
import mpmath
import neural_tangents as nt
from neural_tangents import stax

DIMENSION = 20  # c = 1 - 2 j / 20


def mlp(activation, depth, weight_variance, bias_variance):
    # stax.Erf() is erf(z); W_std is the standard deviation, b_std likewise.
    dense = lambda width: stax.Dense(width, W_std=weight_variance**0.5, b_std=bias_variance**0.5)
    layers = []
    for _ in range(depth):
        layers += [dense(64), {"relu": stax.Relu, "erf": stax.Erf}[activation]()]
    return stax.serial(*layers, dense(1))


def kernels(activation, depth, weight_variance, bias_variance):
    _, _, kernel = mlp(activation, depth, weight_variance, bias_variance)
    x = np.ones((1, DIMENSION))
    y = np.array([[-1.0] * j + [1.0] * (DIMENSION - j) for j in range(DIMENSION + 1)])
    both = kernel(x, y, ("nngp", "ntk"))
    return {
        "activation": activation,
        "depth": depth,
        "weight_variance": weight_variance,
        "bias_variance": bias_variance,
        "ck": [float(v) for v in both.nngp[0]],
        "ntk": [float(v) for v in both.ntk[0]],
    }


def ntk_and_ck(activation, depth, weight_variance, bias_variance, c):
    """Yang & Salman's recursion at one c, in mpmath."""
    mp = mpmath
    w, b = mp.mpf(weight_variance), mp.mpf(bias_variance)
    q, k = w + b, w * c + b
    theta = k
    for _ in range(depth):
        if activation == "relu":
            rho = k / q
            angle = mp.acos(min(rho, mp.mpf(1)))
            value = q * (mp.sqrt(max(1 - rho * rho, 0)) + (mp.pi - angle) * rho) / (2 * mp.pi)
            slope = (mp.pi - angle) / (2 * mp.pi)
            own = q / 2
        else:
            value = 2 / mp.pi * mp.asin(2 * k / (1 + 2 * q))
            slope = 4 / mp.pi / mp.sqrt((1 + 2 * q) ** 2 - 4 * k * k)
            own = 2 / mp.pi * mp.asin(2 * q / (1 + 2 * q))
        q, k = w * own + b, w * value + b
        theta = k + w * theta * slope
    return k, theta


def eigenvalues(activation, depth, weight_variance, bias_variance, dimension, degrees):
    mp = mpmath
    mp.mp.dps = 1000
    psi = [ntk_and_ck(activation, depth, weight_variance, bias_variance, 1 - mp.mpf(2 * j) / dimension)
           for j in range(dimension + 1)]
    rows = []
    for degree in degrees:
        # sum over i minus signs among the degree's bits and j - i among the others
        count = [sum((-1) ** i * math.comb(degree, i) * math.comb(dimension - degree, j - i)
                     for i in range(max(0, j - dimension + degree), min(degree, j) + 1)) for j in range(dimension + 1)]
        mu = [sum(n * p[kernel] for n, p in zip(count, psi)) / mp.mpf(2) ** dimension for kernel in (0, 1)]
        rows.append({"degree": degree, "ck": float(mu[0]), "ntk": float(mu[1])})
    return {"activation": activation, "depth": depth, "weight_variance": weight_variance, "bias_variance": bias_variance,
            "dimension": dimension, "mu": rows}


kernel_cases = [("relu", 1, 2.0, 0.0), ("relu", 3, 1.5, 0.3), ("relu", 10, 2.0, 0.05),
                ("erf", 1, 2.0, 0.0), ("erf", 3, 1.5, 0.3), ("erf", 10, 4.0, 0.05)]
out = {
    "made_by": f"tests/golden/spectra.py, neural-tangents {nt.__version__}, mpmath {mpmath.__version__}",
    "kernels": [kernels(*case) for case in kernel_cases],
    "eigenvalues": [
        eigenvalues("relu", 2, 2.0, 0.1, 512, [0, 1, 2, 3, 17, 128, 255, 256, 400, 511, 512]),
        eigenvalues("erf", 2, 2.0, 0.1, 512, [0, 1, 2, 3, 17, 128, 255, 256, 400, 511, 512]),
        eigenvalues("relu", 1, 2.0, 0.5, 64, [0, 1, 2, 3, 31, 32, 63, 64]),
    ],
}
path = pathlib.Path(__file__).with_name("spectra.json")
path.write_text(json.dumps(out, indent=1) + "\n")
print(path, path.stat().st_size, "bytes")
