"""How a torch module's loss depends on its weights: sharpness under noise, trace and largest eigenvalues of the Hessian."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._estimate import Estimate

Loss = Callable[[Any, Any], Any]


def sharpness(
    net: Any,
    loss: Loss,
    data: Any,
    rho: float = 0.005,
    *,
    draws: int = 20,
    seed: int = 0,
    parameters: Callable[[str], bool] | None = None,
) -> Estimate:
    """How much the mean loss rises when normal noise of deviation `rho` is added to all weights: its mean over `draws` directions.

    >>> import torch, pudica as pu
    >>> net = torch.nn.Linear(1, 1, bias=False).double()
    >>> x = torch.ones(1, 1).double()
    >>> s = pu.sharpness(net, torch.nn.functional.mse_loss, (x, net(x).detach()), rho=0.1, draws=1000)
    >>> abs(s - 0.1**2) < 5 * s.std_error   # the loss is (w - w0)^2, whose mean under noise is rho^2
    True

    Parameters
    ----------
    net, loss
        A torch module, and a loss ``loss(outputs, targets)`` that averages over inputs, as ``torch.nn.functional.cross_entropy``.
    data
        One batch ``(inputs, targets)``, or several: a list of them, a ``DataLoader``. It is gone through once for each draw.
    parameters
        Which of the weights are touched, by name; all that take gradients without it.
    """
    import torch  # pyright: ignore[reportMissingImports]

    if not rho > 0:
        raise ValueError(f"rho={rho}: give a number more than 0")
    _check_draws(draws, 2)
    weights = _weights(net, parameters)
    batches = _batches(data, weights)
    generator = torch.Generator(device="cpu").manual_seed(seed)
    kept = [weight.detach().clone() for weight in weights]
    with _evaluating(net), torch.no_grad():
        clean = _mean_loss(net, loss, batches)
        rises = []
        try:
            for _ in range(draws):
                for weight, old in zip(weights, kept):
                    noise = torch.randn(old.shape, generator=generator, dtype=torch.float64)
                    weight.copy_(old + rho * noise.to(device=old.device, dtype=old.dtype))
                rises.append(_mean_loss(net, loss, batches) - clean)
        finally:
            for weight, old in zip(weights, kept):
                weight.copy_(old)
    return Estimate.of(rises)


@dataclass(frozen=True)
class Hessian:
    """The curvature of the mean loss in the weights."""

    trace: Estimate
    """Its trace by Hutchinson's estimate, the error over directions."""
    eigenvalues: list[float]
    """Its eigenvalues largest in size, the largest first, by Lanczos's method."""
    residuals: list[float] = field(repr=False)
    """How far ||H v - lambda v|| is from 0 for each: small beside the eigenvalue where it is well known."""
    parameters: int
    """How many weights there are."""

    @property
    def top_eigenvalue(self) -> float:
        """The eigenvalue largest in size."""
        return self.eigenvalues[0]


def hessian(
    net: Any,
    loss: Loss,
    data: Any,
    *,
    draws: int = 10,
    top: int = 1,
    steps: int = 50,
    seed: int = 0,
    parameters: Callable[[str], bool] | None = None,
) -> Hessian:
    """Trace and largest eigenvalues of the Hessian of the mean loss, by products with torch's own second derivatives.

    >>> import torch, pudica as pu
    >>> net = torch.nn.Linear(2, 1, bias=False).double()
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 3.0]]).double()
    >>> h = pu.hessian(net, torch.nn.functional.mse_loss, (x, torch.zeros(2, 1).double()))
    >>> [round(float(value), 9) for value in (h.trace, h.top_eigenvalue)]   # the Hessian is diag(1, 9)
    [10.0, 9.0]

    Parameters
    ----------
    net, loss, data, parameters
        As for :func:`sharpness`; the loss must have second derivatives (ReLU has them almost everywhere).
    draws
        Random signs that the trace is averaged over.
    top, steps
        How many eigenvalues, and the most products spent on them.
    """
    import torch  # pyright: ignore[reportMissingImports]

    _check_draws(draws, 1)
    if not 1 <= top <= steps:
        raise ValueError(f"top={top}: give a number of eigenvalues from 1 to steps={steps}")
    weights = _weights(net, parameters)
    batches = _batches(data, weights)
    count = sum(weight.numel() for weight in weights)
    generator = torch.Generator(device="cpu").manual_seed(seed)
    first = weights[0]

    def product(direction: Any) -> Any:
        parts = _split(direction, weights)
        total = torch.zeros_like(direction)
        rows = 0
        for inputs, targets in batches:
            # Second derivatives: fused attention has none, plain attention has.
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), torch.enable_grad():
                value = loss(net(inputs), targets)
                slopes = torch.autograd.grad(value, weights, create_graph=True, allow_unused=True, materialize_grads=True)
                along = torch.stack([(slope * part).sum() for slope, part in zip(slopes, parts)]).sum()
                if not along.requires_grad:
                    found = tuple(torch.zeros_like(weight) for weight in weights)  # a loss that is linear in the weights
                else:
                    found = torch.autograd.grad(along, weights, allow_unused=True, materialize_grads=True)
            total += len(inputs) * torch.cat([one.detach().reshape(-1) for one in found])
            rows += len(inputs)
        return total / rows

    with _evaluating(net):
        values = []
        for _ in range(draws):
            signs = (torch.randint(0, 2, (count,), generator=generator) * 2 - 1).to(device=first.device, dtype=first.dtype)
            values.append(float(signs.double() @ product(signs).double()))
        start = torch.randn(count, generator=generator, dtype=torch.float64).to(device=first.device, dtype=first.dtype)
        eigenvalues, residuals = _lanczos(product, start, min(steps, count), min(top, count))
    return Hessian(Estimate.of(values), eigenvalues, residuals, count)


def _lanczos(product: Callable[[Any], Any], start: Any, steps: int, top: int) -> tuple[list[float], list[float]]:
    """The eigenvalues largest in size of a symmetric matrix, with full reorthogonalisation; the last components tell how well they are known."""
    import torch  # pyright: ignore[reportMissingImports]

    basis = [start / start.norm()]
    diagonal: list[float] = []
    beside: list[float] = []
    eigenvalues, residuals = [0.0] * top, [0.0] * top
    for step in range(steps):
        image = product(basis[-1])
        diagonal.append(float(image.double() @ basis[-1].double()))
        for _ in range(2):  # twice is enough
            for vector in basis:
                image = image - (image @ vector) * vector
        length = float(image.norm())
        matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
        for place, value in enumerate(beside):
            matrix[place, place + 1] = matrix[place + 1, place] = value
        values, vectors = torch.linalg.eigh(matrix)
        order = torch.argsort(values.abs(), descending=True)[:top]
        eigenvalues = [float(values[place]) for place in order]
        residuals = [abs(length * float(vectors[-1, place])) for place in order]
        scale = max(abs(value) for value in eigenvalues)
        done = len(diagonal) >= top and all(residual <= 1e-6 * scale for residual in residuals)
        if done or length <= 1e-12 * max(scale, 1e-300) or step + 1 == steps:
            break
        beside.append(length)
        basis.append(image / length)
    return eigenvalues, residuals


def _check_draws(draws: int, least: int) -> None:
    if draws < least:
        raise ValueError(f"draws={draws}: give at least {least}")


def _weights(net: Any, chosen: Callable[[str], bool] | None) -> list[Any]:
    import torch  # pyright: ignore[reportMissingImports]

    if not isinstance(net, torch.nn.Module):
        raise TypeError(f"{type(net).__name__} is no torch module: its weights cannot be reached")
    named = [(name, weight) for name, weight in net.named_parameters() if weight.requires_grad]
    found = [weight for name, weight in named if chosen is None or chosen(name)]
    if not found:
        raise ValueError("no weight is chosen: the module has none that takes gradients, or `parameters` refuses all")
    return found


def _batches(data: Any, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Batches on the device of the weights."""
    import torch  # pyright: ignore[reportMissingImports]

    pair = isinstance(data, (tuple, list)) and len(data) == 2 and all(hasattr(part, "shape") for part in data)
    device = weights[0].device
    found = []
    for batch in [data] if pair else data:
        inputs, targets = (torch.as_tensor(part).to(device) for part in batch)
        if inputs.is_floating_point():
            inputs = inputs.to(weights[0].dtype)
        if len(inputs) != len(targets):
            raise ValueError(f"{len(inputs)} inputs and {len(targets)} targets in one batch")
        if len(inputs):
            found.append((inputs, targets))
    if not found:
        raise ValueError("there are no data: give (inputs, targets), or batches of them")
    return found


def _mean_loss(net: Any, loss: Loss, batches: Sequence[tuple[Any, Any]]) -> float:
    import math

    rows = sum(len(inputs) for inputs, _ in batches)
    total = sum(len(inputs) * float(loss(net(inputs), targets)) for inputs, targets in batches)
    if not math.isfinite(total):
        raise ValueError(f"the loss is {total}, not a finite number: nothing can be compared")
    return total / rows


def _split(direction: Any, weights: Sequence[Any]) -> list[Any]:
    parts, start = [], 0
    for weight in weights:
        parts.append(direction[start : start + weight.numel()].reshape(weight.shape))
        start += weight.numel()
    return parts


@contextlib.contextmanager
def _evaluating(net: Any) -> Iterator[None]:
    modules = [(module, module.training) for module in net.modules()]
    net.eval()
    try:
        yield
    finally:
        for module, training in modules:
            module.training = training
