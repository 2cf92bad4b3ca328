"""Boolean functions against their definitions, in numpy."""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pudica as pu
from words import assert_one_sentence


def cube(n: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=n)), dtype=np.uint8)


def by_definition(table: np.ndarray, n: int) -> dict:
    rows = np.arange(2**n)
    flips = np.array([table != table[rows ^ (1 << (n - 1 - i))] for i in range(n)])
    signs = 1.0 - 2.0 * table
    characters = 1.0 - 2.0 * ((cube(n).astype(int) @ cube(n).T.astype(int)) % 2)
    fourier = characters @ signs / 2**n
    degrees = cube(n).sum(axis=1)
    return {
        "influences": flips.mean(axis=1),
        "sensitivity_histogram": np.bincount(flips.sum(axis=0), minlength=n + 1),
        "fourier": fourier,
        "degree_profile": np.bincount(degrees, weights=fourier**2, minlength=n + 1),
        "degree": int(degrees[np.abs(fourier) > 1e-12].max(initial=0)),
    }


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_every_measure_is_its_definition(n):
    for seed in range(5):
        table = np.random.default_rng(seed).random(2**n) < 0.4
        f, expected = pu.boolean(table), by_definition(table, n)
        assert f.n == n and (f.table == table).all() and f.degree == expected["degree"]
        assert (f.influences == expected["influences"]).all()
        assert (f.sensitivity_histogram == expected["sensitivity_histogram"]).all()
        np.testing.assert_allclose(f.fourier(), expected["fourier"], atol=1e-15)
        np.testing.assert_allclose(f.degree_profile, expected["degree_profile"], atol=1e-15)
        assert f.average_sensitivity == pytest.approx(expected["influences"].sum())


def test_closed_forms():
    n = 21
    f = pu.boolean("majority", n=n)
    influence = math.comb(n - 1, (n - 1) // 2) / 2 ** (n - 1)
    assert f.average_sensitivity == pytest.approx(n * influence, rel=1e-12)
    np.testing.assert_allclose(f.influences, influence)
    assert f.fourier().shape == (2**n,) and f.fourier().dtype == np.float64
    parity = pu.boolean("parity", n=12)
    assert parity.average_sensitivity == 12 and parity.degree == 12 and parity.noise_stability(0.5) == pytest.approx(0.5**12)
    assert parity.fourier()[-1] == 1 and parity.fourier()[:-1].any() == False  # noqa: E712
    assert (pu.boolean("majority", n=5).block_sensitivity, pu.boolean("majority", n=5).decision_tree_depth) == (3, 5)


def test_one_function_in_every_way():
    x = cube(3)
    values = x[:, 0] & (x[:, 1] | (1 - x[:, 2]))
    expected = pu.boolean("x1 & (x2 | !x3)")
    ways = [values, values.astype(bool), values.astype(np.int64), values.astype(">f8"), 1.0 - 2.0 * values, values.tolist()]
    ways += [values.astype(np.float32), np.repeat(values, 2)[::2]]  # the last is not contiguous
    ways += [lambda bits: bits[:, 0] & (bits[:, 1] | (1 - bits[:, 2]))]
    for way in ways:
        f = pu.boolean(way, n=3)
        assert (f.table == expected.table).all() and f.table.dtype == bool
        assert (f.fourier() == expected.fourier()).all()
    assert pu.boolean(expected) is expected


def test_a_real_function_has_a_spectrum():
    values = np.random.default_rng(0).normal(size=16)
    f = pu.boolean(values)
    characters = 1.0 - 2.0 * ((cube(4).astype(int) @ cube(4).T.astype(int)) % 2)
    np.testing.assert_allclose(f.fourier(), characters @ values / 16, atol=1e-14)
    np.testing.assert_array_equal(f.table, values)
    assert f.mean == pytest.approx(values.mean())


def test_what_is_sampled_has_an_error():
    n = 101
    f = pu.boolean("majority", n=n)
    found = f.average_sensitivity
    assert isinstance(found, pu.Estimate) and found.samples > 100
    expected = n * math.comb(n - 1, (n - 1) // 2) / 2 ** (n - 1)
    assert abs(found - expected) < 5 * found.std_error
    assert found.ci95[0] < found < found.ci95[1] and "±" in repr(found)


def test_it_is_the_commands_analysis():
    said = subprocess.run(
        [sys.executable, "-m", "pudica", "boolean", "tribes:3", "--n", "9", "--json", "--rho", "0.3,0.9", "--p", "0.7"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    command, own = json.loads(said.stdout), pu.boolean("tribes:3", n=9).analysis(rho=[0.3, 0.9], p=0.7)
    command.pop("seconds"), own.pop("seconds")
    assert command == own
    fixed = pu.boolean("majority", n=5).analysis(["mean", "influences"], fix={"x1": 1, "x3": 0})
    assert fixed["free_variables"] == [2, 4, 5]
    assert fixed["influences"] == pu.boolean("majority", n=5).restrict(x1=1, x3=0).influences.tolist()


def test_calling_reads_the_table():
    f = pu.boolean("x1 & !x3", n=3)
    assert (f(cube(3)) == ((cube(3)[:, 0] == 1) & (cube(3)[:, 2] == 0))).all()
    assert f([1, 0, 0]) and not f([1, 0, 1])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pu.boolean("majorty", n=3), "did you mean 'majority'"),
        (lambda: pu.boolean("majority"), "say how many"),
        (lambda: pu.boolean([0, 1, 1]), "2^n"),
        (lambda: pu.boolean([]), "empty"),
        (lambda: pu.boolean([0.0, math.nan]), "not a finite number"),
        (lambda: pu.boolean([0, 1], n=3), "asks for 2^3"),
        (lambda: pu.boolean(np.array(["a", "b"])), "not read here"),
        (lambda: pu.boolean(lambda x: x), "how many bits"),
        (lambda: pu.boolean(lambda x: x.sum(), n=3), "one value for each row"),
        (lambda: pu.boolean(lambda x: x[:, 0], n=99), "from 1 to"),
        (lambda: pu.boolean("parity", n=4).analysis(["influence"]), "did you mean"),
        (lambda: pu.boolean("parity", n=4).analysis(rho=2), "from -1 to 1"),
        (lambda: pu.boolean("parity", n=4).fourier("12"), "convention"),
        (lambda: pu.boolean("parity", n=4).restrict(x7=1), "x1 to x4"),
        (lambda: pu.boolean("parity", n=40).fourier(), "n=40"),
        (lambda: pu.boolean("parity", n=4)([0, 1]), "last axis"),
    ],
)
def test_mistakes_are_one_sentence(make, words):
    with pytest.raises(ValueError) as raised:
        make()
    assert_one_sentence(str(raised.value), words)


def test_a_callables_exception_is_itself():
    class Own(Exception):
        pass

    def broken(x):
        raise Own("no")

    with pytest.raises(Own, match="^no$"):
        pu.boolean(broken, n=3)


def test_other_threads_run_while_rust_works():
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    f = pu.boolean("random:3", n=22)
    before = ticks[0]
    f.analysis()
    during = ticks[0] - before
    stop.set()
    thread.join()
    assert during > 3


def test_it_reads_well():
    f = pu.boolean("majority", n=5)
    assert repr(f) == "Boolean('majority', n=5)"
    assert "average sensitivity" in f._repr_html_() and "1.875" in f._repr_html_() and "<svg" in f._repr_html_()
    assert "<svg" in pu.boolean("majority", n=15)._repr_html_()
    assert "±" in pu.boolean("majority", n=41)._repr_html_()


def test_ctrl_c_ends_the_computation():
    f = pu.boolean("majority", n=41)
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        f.analysis(measures=["average_sensitivity"], precision=1e-12, time_limit=3600)
    timer.join()
    assert time.monotonic() - began < 60
    # Nothing goes on in the background.
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.5
