"""Sharpness and Hessian against closed forms."""

import numpy as np
import pytest

import pudica as pu

torch = pytest.importorskip("torch")
mse = torch.nn.functional.mse_loss


def quadratic(n=6, seed=0):
    """Linear regression: the Hessian of the mean squared error is 2/rows X^T X, whatever the weights."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(50, n, generator=generator, dtype=torch.float64)
    net = torch.nn.Linear(n, 1, bias=False, dtype=torch.float64)
    return net, x, net(x).detach(), 2 * x.T @ x / len(x)


def test_hessian_of_a_quadratic():
    net, x, y, expected = quadratic()
    found = pu.hessian(net, mse, (x, y), draws=200, top=3, seed=1)
    eigenvalues = torch.linalg.eigvalsh(expected).flip(0)
    np.testing.assert_allclose(found.eigenvalues, eigenvalues[:3], rtol=1e-8)
    assert found.top_eigenvalue == found.eigenvalues[0] and max(found.residuals) < 1e-5
    assert abs(found.trace - float(expected.trace())) < 5 * found.trace.std_error and found.trace.std_error > 0
    assert found.parameters == 6 and "trace" in repr(found)
    # Batches of different sizes are one set of data.
    batches = [(x[:7], y[:7]), (x[7:30], y[7:30]), (x[30:], y[30:])]
    again = pu.hessian(net, mse, batches, draws=200, top=3, seed=1)
    assert again.trace == pytest.approx(found.trace) and again.eigenvalues == pytest.approx(found.eigenvalues)


def test_hessian_of_a_network_against_torchs_own():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)).double()
    x, y = torch.randn(20, 3).double(), torch.randint(0, 3, (20,))
    names, weights = zip(*[(name, weight.detach()) for name, weight in net.named_parameters()])
    shapes = [weight.shape for weight in weights]

    def loss_at(vector):
        parts = torch.split(vector, [shape.numel() for shape in shapes])
        values = {name: part.reshape(shape) for name, part, shape in zip(names, parts, shapes)}
        return torch.nn.functional.cross_entropy(torch.func.functional_call(net, values, (x,)), y)

    full = torch.autograd.functional.hessian(loss_at, torch.cat([weight.reshape(-1) for weight in weights]))
    found = pu.hessian(net, torch.nn.functional.cross_entropy, (x, y), draws=300, top=2)
    eigenvalues = torch.linalg.eigvalsh(full)
    largest = eigenvalues[torch.argsort(eigenvalues.abs(), descending=True)][:2]
    np.testing.assert_allclose(found.eigenvalues, largest, rtol=1e-5)
    assert abs(found.trace - float(full.trace())) < 5 * found.trace.std_error
    assert all(weight.grad is None for weight in net.parameters()) and net.training


def test_attention_has_second_derivatives():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    net = torch.nn.Sequential(layer, torch.nn.Flatten(), torch.nn.Linear(40, 2))
    x, y = torch.randn(6, 5, 8), torch.randint(0, 2, (6,))
    assert np.isfinite(pu.hessian(net, torch.nn.functional.cross_entropy, (x, y), draws=2, steps=5).trace)


def test_sharpness_of_a_quadratic():
    net, x, y, expected = quadratic()
    before = net.weight.detach().clone()
    found = pu.sharpness(net, mse, (x, y), rho=0.1, draws=2000)
    # At the minimum the rise is 1/2 w^T H w, whose mean under N(0, rho^2) is rho^2 tr(H) / 2.
    assert abs(found - 0.01 * float(expected.trace()) / 2) < 5 * found.std_error
    assert found.samples == 2000 and (net.weight == before).all() and net.training
    assert pu.sharpness(net, mse, (x, y), rho=0.1, draws=5) == pu.sharpness(net, mse, [(x[:9], y[:9]), (x[9:], y[9:])], rho=0.1, draws=5)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
    assert pu.sharpness(net, mse, loader, rho=0.1, draws=5) == pytest.approx(pu.sharpness(net, mse, (x, y), rho=0.1, draws=5))


def test_only_some_weights():
    net = torch.nn.Linear(2, 1).double()
    x = torch.zeros(4, 2).double()
    y = net(x).detach()
    # Of zeros only the bias matters: E (rho z)^2.
    assert pu.sharpness(net, mse, (x, y), rho=0.1, parameters=lambda name: "weight" in name) == 0
    bias = pu.sharpness(net, mse, (x, y), rho=0.1, draws=2000, parameters=lambda name: "bias" in name)
    assert abs(bias - 0.01) < 5 * bias.std_error
    assert pu.hessian(net, mse, (x, y), parameters=lambda name: "bias" in name).top_eigenvalue == pytest.approx(2)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda net, x, y: pu.sharpness(net, mse, (x, y), rho=0), ValueError, "rho=0"),
        (lambda net, x, y: pu.sharpness(net, mse, (x, y), draws=1), ValueError, "at least 2"),
        (lambda net, x, y: pu.sharpness(net, mse, [], rho=0.1), ValueError, "no data"),
        (lambda net, x, y: pu.sharpness(net, mse, (x, y[:3]), rho=0.1), ValueError, "50 inputs and 3 targets"),
        (lambda net, x, y: pu.sharpness(lambda x: x, mse, (x, y)), TypeError, "no torch module"),
        (lambda net, x, y: pu.sharpness(net, mse, (x, y * np.nan)), ValueError, "not a finite number"),
        (lambda net, x, y: pu.hessian(net, mse, (x, y), top=0), ValueError, "top=0"),
        (lambda net, x, y: pu.hessian(net, mse, (x, y), parameters=lambda name: False), ValueError, "no weight"),
    ],
)
def test_mistakes_are_one_sentence(make, error, words):
    net, x, y, _ = quadratic()
    before = net.weight.detach().clone()
    with pytest.raises(error) as raised:
        make(net, x, y)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    assert (net.weight == before).all()
