"""A torch module on a GPU. Where there is no pytest, `python test_gpu.py` runs the same."""

import sys
import traceback

import numpy as np

import pudica as pu

try:
    import torch
except ImportError:
    torch = None

HAS_GPU = torch is not None and torch.cuda.is_available()
# 13 images of 16 patches: the last batch is smaller than the others.
IMAGES = np.random.default_rng(1).random(size=(13, 3, 16, 16)).astype(np.float32)
ASKED = {"nudge": pu.PatchNoise(size=4, variance=1.0, draws=3), "response": ["label", "l2"], "batch": 10, "name": "net"}


def a_net():
    """On the GPU. Skips where there is none."""
    if not HAS_GPU:
        import pytest

        pytest.skip("there is no GPU")
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(8 * 14 * 14, 5)).cuda()


def test_a_module_on_a_gpu_stays_there():
    net = a_net()
    r = pu.measure(net, IMAGES, **ASKED)
    assert next(net.parameters()).is_cuda and net.training
    assert r.summary["models"][0]["digest"] == pu.measure(net.cpu(), IMAGES, **ASKED).summary["models"][0]["digest"]


def test_its_numbers_are_those_of_batches_moved_by_hand_to_the_bit():
    net = a_net().eval()

    def by_hand(x):
        with torch.no_grad():
            return net(torch.from_numpy(x).cuda()).cpu().numpy()

    # Patches are put together on the GPU, by hand they come from here; all pixels travel either way.
    for nudge in (ASKED["nudge"], pu.PatchReplace(size=8, draws=2), pu.PixelNoise(variance=1.0, draws=3)):
        asked = {**ASKED, "nudge": nudge, "normalise": "imagenet"}
        r, again = pu.measure(net, IMAGES, **asked), pu.measure(by_hand, IMAGES, **asked)
        assert [one["value"] for one in again.summary["results"]] == [one["value"] for one in r.summary["results"]]
        assert (again.by_input == r.by_input).all() and (again.by_site == r.by_site).all() and r.mean > 0


def counted(forward):
    """A module on the GPU that counts how often Python is asked."""

    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.calls = a_net(), 0

        def forward(self, x):
            self.calls += 1
            return forward(self.net, x)

    return Counted().eval()


#: Batches of `ASKED`: two untouched, 48 of the first ten images and 15 of the other three.
BATCHES = 65


def test_what_a_small_network_launches_is_recorded_and_replayed_with_the_same_bits():
    a_net()
    net = counted(lambda net, x: net(x))
    sizes = {**ASKED, "nudge": [ASKED["nudge"], pu.PatchNoise(size=8, draws=9), pu.PixelNoise(draws=40)]}

    def asked_by_hand(x):
        with torch.no_grad():
            return net(torch.from_numpy(x).cuda()).cpu()

    by_hand = pu.measure(asked_by_hand, IMAGES, **sizes)
    batches, net.calls = net.calls, 0
    r = pu.measure(net, IMAGES, **sizes)
    assert net.calls < batches / 2, f"Python was asked {net.calls} times about {batches} batches"
    assert [one["value"] for one in by_hand.summary["results"]] == [one["value"] for one in r.summary["results"]]
    assert (by_hand.by_input == r.by_input).all() and r.mean > 0


def test_a_network_that_looks_at_values_or_draws_is_asked_every_time():
    a_net()

    def looks(net, x):
        return net(x) if float(x[0, 0, 0, 0]) < 1e9 else net(-x)

    net = counted(looks)
    r = pu.measure(net, IMAGES, **ASKED)
    assert net.calls >= BATCHES
    plain = pu.measure(net.net, IMAGES, **ASKED)
    assert (r.by_input == plain.by_input).all() and (r.by_site == plain.by_site).all()
    draws = counted(lambda net, x: net(x) + 1e-3 * torch.randn(len(x), 5, device="cuda"))
    r = pu.measure(draws, IMAGES, **ASKED)
    assert draws.calls >= BATCHES and abs(r.result(response="l2").mean - plain.result(response="l2").mean) < 0.1
    # One with hooks calls them for every batch.
    hooked, heard = a_net().eval(), []
    hooked.register_forward_hook(lambda *_: heard.append(1))
    pu.measure(hooked, IMAGES, **ASKED)
    assert len(heard) >= BATCHES


def test_memory_is_given_back():
    net = a_net().eval()
    reserved = []
    for _ in range(6):
        pu.measure(net, IMAGES, **ASKED)
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[-1] == reserved[2], reserved


def test_half_precision_is_the_modules_own():
    net = a_net().eval()
    exact = pu.measure(net, IMAGES, **ASKED).result(response="l2").mean
    assert abs(pu.measure(net.half(), IMAGES, **ASKED).result(response="l2").mean - exact) < 0.02 * exact


def test_an_exception_names_its_input():
    class Broken(torch.nn.Module if torch else object):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            if (x[:, 0, 0, 0] == float(IMAGES[7, 0, 0, 0])).any():
                raise KeyError("seven")
            return self.net(x)

    broken = Broken(a_net())
    try:
        pu.measure(broken, IMAGES, **ASKED)
    except KeyError as error:
        assert error.pudica_input == 7 and "untouched input 7" in error.__notes__[0]
    else:
        raise AssertionError("nothing was raised")


if __name__ == "__main__":
    if not HAS_GPU:
        sys.exit("there is no GPU")
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                print(f"{name}: passed")
            except Exception:
                failed += 1
                print(f"{name}: failed\n{traceback.format_exc()}")
    sys.exit(failed)
