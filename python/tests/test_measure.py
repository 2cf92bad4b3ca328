"""Measurements of Python callables: numbers, and what goes wrong."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pudica as pu
from pudica._models import Adapter
from words import assert_one_sentence

ROWS = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
IMAGES = np.random.default_rng(1).random(size=(40, 3, 8, 8)).astype(np.float32)


def linear(x):
    return x @ np.array([1.0, -2.0, 0.0, 0.5], np.float32)


def bright(x):
    """Two classes: is the upper left quarter brighter than the rest?"""
    return np.stack([x[:, :, :4, :4].mean((1, 2, 3)), x.mean((1, 2, 3))], axis=1)


def test_a_linear_function_shifts_by_its_coefficients():
    r = pu.measure(linear, ROWS, nudge=pu.FeatureNoise(scale=0.5, draws=20), response="l2")
    # E|N(0, s^2)| = s sqrt(2 / pi), s = coefficient x scale x the column's spread.
    expected = np.abs([1.0, -2.0, 0.0, 0.5]) * 0.5 * ROWS.std(axis=0, ddof=1) * np.sqrt(2 / np.pi)
    assert r.by_site.shape == (4,) and r.by_input.shape == (300,)
    assert (np.abs(r.by_site - expected) <= 5 * r.results[0].by_site_std_error + 1e-12).all()
    assert r.mean == pytest.approx(r.by_input.mean()) and r.mean == pytest.approx(r.by_site.mean())
    assert r.ci95[0] < r.mean < r.ci95[1] and r.std_error > 0
    assert r.results[0].evaluations == 300 * 4 * 20


def test_patches_make_a_map():
    r = pu.measure({"bright": bright}, IMAGES, nudge=pu.PatchNoise(size=2, variance=4.0), response=["label", "total-variation"])
    assert r.by_site.shape == (4, 4)
    assert r.by_site[:2, :2].mean() > 1.3 * r.by_site[2:, 2:].mean()
    assert [one.response for one in r.results] == ["label", "total-variation"]
    assert r.result(response="total-variation").nudge == "patch-noise:size=2,variance=4"
    assert "bright" in repr(r) and "<svg" in r._repr_html_()
    assert set(r.frame("numpy")) >= {"model", "nudge", "response", "value", "low", "high"}
    with pytest.raises(KeyError):
        r.result(response="loss")


def test_labels_give_accuracy_and_loss():
    labels = bright(IMAGES).argmax(1)
    r = pu.measure(bright, IMAGES, labels=labels, nudge=pu.PixelNoise(variance=0.01))
    assert [one.response for one in r.results] == ["label", "total-variation", "accuracy", "loss"]
    assert r.summary["models"][0]["clean_accuracy"]["value"] == 1.0
    assert r.result(response="accuracy").mean == pytest.approx(1 - r.result(response="label").mean)
    assert set(r.result(response="label").by_class) <= {"0", "1"}


def test_bits_are_measured_exactly():
    def majority(x):
        return x.sum(axis=1) - x.shape[1] / 2

    r = pu.measure(majority, "bits:7")
    result = r.result(response="label")
    assert result.exact and result.mean * 7 == pytest.approx(pu.boolean("majority", n=7).average_sensitivity)
    some = pu.measure(majority, np.random.default_rng(0).random((50, 9)) < 0.5, response="label")
    assert some.by_site.shape == (9,) and not some.results[0].exact
    signs = pu.measure(lambda x: x.sum(axis=1), "bits:7", bits="signs", response="label")
    assert signs.mean == result.mean


def test_texts_and_tokens():
    texts = ["good and good", "bad or worse", "good enough", "not bad"] * 5
    r = pu.measure(lambda some: [text.count("good") - 0.5 for text in some], texts, nudge=pu.WordDelete(), response="label")
    assert r.mean > 0 and len(r.by_input) == 20
    pairs = [("a b", "b a"), ("c d", "d c")]
    pu.measure(lambda some: [len(one) - len(other) + 0.5 for one, other in some], pairs, nudge="word-delete", response="label")
    tokens = np.random.default_rng(0).integers(0, 20, size=(30, 6))
    seen = []

    def first(x):
        seen.append(x.dtype)
        return x[:, 0] - 9.5

    r = pu.measure(first, tokens, nudge=pu.TokenReplace(vocabulary=20), response="label")
    assert seen[0] == np.int64 and np.count_nonzero(r.by_site) == 1


def test_several_models_are_compared():
    r = pu.measure({"one": linear, "other": lambda x: 3 * x[:, 0]}, ROWS, nudge="feature-noise", response="l2")
    assert [one.model for one in r.results] == ["one", "other"]
    (difference,) = r.differences
    assert difference["value"] == pytest.approx(r.result(model="other").mean - r.result(model="one").mean)
    assert r.result(model="other").by_site[0] > r.result(model="one").by_site[0]


def test_precision_and_budget_end_it():
    r = pu.measure(linear, ROWS, nudge=pu.FeatureNoise(scale=1.0), response="label", precision=0.05)
    assert r.results[0].inputs < 300 and (r.ci95[1] - r.ci95[0]) / 2 <= 0.05
    assert np.isnan(r.by_input).sum() == 300 - r.results[0].inputs
    r = pu.measure(linear, ROWS, nudge=pu.FeatureNoise(scale=1.0), response="label", budget=100)
    assert r.results[0].evaluations <= 100 and "budget" in r.results[0].note
    assert pu.measure(linear, ROWS, sample=17, response="label").results[0].inputs == 17


SERVE = '''
import json, math, sys
import numpy as np
hello = {"pudica": 1, "name": "net", "takes": "images", "classes": 5, "outputs": "logits", "batch": 48}
weights = np.random.default_rng(5).normal(size=(192, 5)).astype(np.float32)
source, sink = sys.stdin.buffer, sys.stdout.buffer
for line in iter(source.readline, b""):
    header, values, reply = json.loads(line), b"", hello
    if "hello" not in header:
        data = source.read(4 * header["rows"] * math.prod(header["shape"]))
        scores = np.frombuffer(data, "<f4").reshape(header["rows"], -1) @ weights
        reply, values = {"rows": len(scores), "classes": 5}, scores.tobytes()
    sink.write(json.dumps(reply).encode() + b"\\n" + values)
    sink.flush()
'''


def test_the_commands_folder_to_the_bit(tmp_path):
    """A program and a callable with the same scores, by the command and from here: the same numbers, files and page."""
    (tmp_path / "serve.py").write_text(SERVE)
    labels = np.arange(40) % 5
    np.save(tmp_path / "x.npy", IMAGES)
    np.save(tmp_path / "y.npy", labels)
    nudges = ["patch-noise:size=2,variance=0.5,1", "pixel-noise:variance=0.01"]
    command = [sys.executable, "-m", "pudica", "measure", "--program", f"{sys.executable} serve.py", "--inputs", "x.npy"]
    command += ["--labels", "y.npy", "--out", "command", *(part for nudge in nudges for part in ("--nudge", nudge))]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    weights = np.random.default_rng(5).normal(size=(192, 5)).astype(np.float32)
    r = pu.measure(
        lambda x: x.reshape(len(x), -1) @ weights,
        IMAGES,
        labels=labels,
        nudge=[pu.PatchNoise(size=2, variance=[0.5, 1.0]), pu.PixelNoise(variance=0.01)],
        name="net",
        batch=48,
    )
    page = r.save(tmp_path / "own")
    command_summary = json.loads((tmp_path / "command/summary.json").read_text())
    assert r.summary["results"] == command_summary["results"] and len(r.results) == 12
    for name in ["details.json", "inputs.csv", "results.csv"]:
        assert (tmp_path / "own" / name).read_bytes() == (tmp_path / "command" / name).read_bytes(), name

    def files(folder):
        return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file() and path.parent.name != "work")

    assert files(tmp_path / "own") == [name for name in files(tmp_path / "command") if name != ".lock"]
    assert page == tmp_path / "own/report.html" and page.stat().st_size > 10_000
    assert pu.open(tmp_path / "own").mean == r.mean
    assert r.figure(sorted(path.stem for path in (tmp_path / "own/figures").glob("*.svg"))[0]).svg.startswith("<svg")
    with pytest.raises(ValueError, match="something else"):
        pu.measure(linear, ROWS).save(tmp_path / "own")


class Own(Exception):
    pass


def test_a_models_exception_is_itself_with_the_inputs_index():
    def broken(x):
        if (x[:, 3] == ROWS[123, 3]).any():
            raise Own("cannot")
        return x[:, 0]

    with pytest.raises(Own) as raised:
        pu.measure(broken, ROWS, nudge="feature-noise")
    assert str(raised.value) == "cannot"
    (note,) = raised.value.__notes__
    assert "untouched input 123" in note and "broken raised Own" in note
    assert raised.value.pudica_input == 123

    def broken_when_touched(x):
        if np.abs(x).max() > 50:
            raise Own("cannot")
        return x[:, 0]

    with pytest.raises(Own) as raised:
        pu.measure(broken_when_touched, ROWS, nudge=pu.FeatureNoise(scale=100))
    assert f"touched input {raised.value.pudica_input})" in raised.value.__notes__[0] and "untouched" not in raised.value.__notes__[0]

    def broken_by_many(x):
        if len(x) > 10:
            raise Own("too many")
        return x[:, 0]

    with pytest.raises(Own) as raised:
        pu.measure(broken_by_many, ROWS)
    assert "none of which fails alone" in raised.value.__notes__[0]

    def broken_at_once(x):
        if (x[:, 3] == ROWS[1, 3]).any():
            raise Own("cannot")
        return x[:, 0]

    with pytest.raises(Own) as raised:
        pu.measure(broken_at_once, ROWS)
    assert "untouched input 1" in raised.value.__notes__[0] and raised.value.pudica_input == 1


def test_what_python_prints_of_a_models_exception_tells_the_input():
    # Notes are printed since Python 3.11; before, there is what came before an exception. In a process of its own, as pytest prints in its own way.
    program = "import numpy as np, pudica as pu\npu.measure(lambda x: 1 // 0, np.ones((3, 2), dtype=np.float32), name='broken')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.count("broken raised ZeroDivisionError (at the untouched input 0)") == 1
    assert "ZeroDivisionError: integer division or modulo by zero" in ended.stderr


class Elsewhere(Adapter):
    """Computes when it is waited for, as a GPU does, and reads batches where they lie then."""

    asynchronous = True
    rooms = 0
    open: list = []

    def room(self, shape):
        Elsewhere.rooms += 1
        return np.empty(shape, dtype=np.float32)

    def begin(self, batch):
        self.open.append(len(batch))
        assert len(self.open) <= 2, "one is answered, one is begun"
        return batch

    def finish(self, begun, rows):
        self.open.pop(0)
        return super().finish(self.model(begun), rows)


def test_what_computes_elsewhere_gives_the_same_numbers(monkeypatch):
    images = np.random.default_rng(0).random(size=(11, 1, 8, 8)).astype(np.float32)
    asked = {"nudge": pu.PatchNoise(size=2, draws=3), "response": ["label", "l2"], "batch": 7}

    def net(x):
        return np.stack([x[:, 0, 0].sum(axis=1), x[:, 0, 3].sum(axis=1), 1.0 + x[:, 0, :, 5].prod(axis=1)], axis=1)

    here = pu.measure(net, images, **asked)
    monkeypatch.setattr("pudica._measure.adapt", lambda model, name, **rest: Elsewhere(model, "net", "logits", 7, rest["signs"], None))
    there = pu.measure(net, images, **asked)
    assert 0 < Elsewhere.rooms <= 8 and not Elsewhere.open
    assert (here.by_input == there.by_input).all() and (here.by_site == there.by_site).all() and here.mean > 0
    assert here.result(response="l2").mean == there.result(response="l2").mean


def score(value):
    def model(x):
        scores = linear(x)
        scores[x[:, 0] == ROWS[7, 0]] = value
        return scores

    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pu.measure(score(np.nan), ROWS), "NaN to the untouched input 7"),
        (lambda: pu.measure(score(np.inf), ROWS), "inf to the untouched input 7"),
        (lambda: pu.measure(lambda x: x[:-1, 0], ROWS), "shape (63,) for 64 inputs"),
        (lambda: pu.measure(lambda x: x.reshape(len(x), 2, 2), ROWS), "shape (64, 2, 2)"),
        (lambda: pu.measure(lambda x: None, ROWS), "NoneType"),
        (lambda: pu.measure(lambda x: [[1], [1, 2]], ROWS), "different lengths"),
        (lambda: pu.measure(lambda x: x[:, : 1 + (x[0, 0] == ROWS[0, 0])], ROWS, batch=100), "scores per input"),
        (lambda: pu.measure(linear, ROWS[:0]), "empty"),
        (lambda: pu.measure(linear, []), "shape (0,)"),
        (lambda: pu.measure(linear, ROWS[0]), "first axis counts inputs"),
        (lambda: pu.measure(linear, [[1.0], [1.0, 2.0]]), "differ in shape"),
        (lambda: pu.measure(linear, np.where(ROWS == ROWS[5, 2], np.nan, ROWS)), "row 5, value 2"),
        (lambda: pu.measure(linear, ROWS, nudge="patch-noise"), "is for images"),
        (lambda: pu.measure(linear, ROWS, nudge="feature-nois"), "did you mean 'feature-noise'"),
        (lambda: pu.measure(linear, ROWS, nudge=pu.FeatureNoise(scale=-1)), "more than 0"),
        (lambda: pu.measure(linear, ROWS, response="lable"), "did you mean 'label'"),
        (lambda: pu.measure(linear, ROWS, response="loss"), "needs labels"),
        (lambda: pu.measure(linear, ROWS, labels=[0, 1]), "2 labels for 300 inputs"),
        (lambda: pu.measure(linear, ROWS, labels=np.full(300, -1)), "numbered from 0"),
        (lambda: pu.measure(linear, ROWS, labels=["a"] * 300), "whole numbers"),
        (lambda: pu.measure(linear, ROWS, precision=0), "more than 0"),
        (lambda: pu.measure(linear, ROWS, batch=0), "at least 1"),
        (lambda: pu.measure(linear, ROWS, outputs="odds"), "'logits' or 'probabilities'"),
        (lambda: pu.measure(linear, ROWS, nudge=pu.EmbeddingNoise()), "is for"),
        (lambda: pu.measure(bright, IMAGES, labels=np.zeros(40, int), nudge=pu.Fgsm()), "no gradients"),
        (lambda: pu.measure(bright, IMAGES, normalise="imagnet"), "imagenet"),
        (lambda: pu.measure("no-such.onnx", ROWS), "No such file"),
        (lambda: pu.measure(linear, "no-such.npy"), "no such file"),
        (lambda: pu.measure({}, ROWS), "no model"),
    ],
)
def test_mistakes_are_one_sentence(make, words):
    with pytest.raises(ValueError) as raised:
        make()
    assert_one_sentence(str(raised.value), words)


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="int is no model"):
        pu.measure(3, ROWS)


def slow(x):
    time.sleep(0.01)
    return linear(x)


def test_ctrl_c_saves_and_the_same_call_continues(tmp_path):
    def go(model, out):
        return pu.measure(model, ROWS, nudge=pu.FeatureNoise(draws=50), response="l2", out=tmp_path / out, name="linear", identity="1")

    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        go(slow, "stopped")
    (work,) = (tmp_path / "stopped/work").iterdir()
    lines = len(work.read_text().splitlines())
    straight, continued = go(linear, "straight"), go(linear, "stopped")
    assert lines < len(work.read_text().splitlines())
    assert continued.summary["results"] == straight.summary["results"]
    assert (tmp_path / "stopped/inputs.csv").read_bytes() == (tmp_path / "straight/inputs.csv").read_bytes()
    with pytest.raises(ValueError, match="another measurement"):
        pu.measure(linear, ROWS, nudge=pu.FeatureNoise(draws=2), response="l2", out=tmp_path / "stopped", name="linear", identity="1")


def test_a_function_without_identity_is_not_continued(tmp_path):
    pu.measure(linear, ROWS, response="label", out=tmp_path / "out")
    with pytest.raises(ValueError, match="another measurement"):
        pu.measure(linear, ROWS, response="label", out=tmp_path / "out")


def test_pictures_of_bytes_are_normalised_as_by_the_command():
    seen = []

    def model(x):
        seen.append(x)
        return x.mean((1, 2, 3))

    pictures = (IMAGES * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    r = pu.measure(model, pictures, normalise=([0.5, 0.5, 0.5], [0.25, 0.25, 0.25]), response="label", sample=3)
    assert seen[0].shape == (3, 3, 8, 8) and seen[0].dtype == np.float32
    assert seen[0].min() >= -2 and seen[0].max() <= 2 and r.results[0].inputs == 3
    # noise of the same variance in units of the deviation
    noisy = seen[1][0] - seen[0][0]
    assert np.count_nonzero(noisy) <= 3 * 64


def test_temporary_folders_go():
    folder = pu.measure(linear, ROWS, response="label").folder
    import gc

    gc.collect()
    assert not folder.exists()


def test_every_nudge_of_the_command_has_its_class():
    from dataclasses import fields

    from pudica import _nudges

    listed = subprocess.run([sys.executable, "-m", "pudica", "measure", "--list", "--json"], capture_output=True, check=True).stdout
    listed = {nudge["name"]: {one["name"] for one in nudge["parameters"]} for nudge in json.loads(listed)["nudges"]}
    classes = {one.nudge: one for one in vars(_nudges).values() if isinstance(one, type) and issubclass(one, pu.Nudge) and one.nudge}
    listed.pop("hessian")  # pu.hessian
    assert {name: {field.name for field in fields(one)} for name, one in classes.items()} == listed
    assert all(getattr(pu, one.__name__) is one for one in classes.values())


def test_plot_without_a_screen():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert pu.measure(bright, IMAGES, nudge=pu.PatchNoise(size=2)).plot().get_title().startswith("bright")
    assert pu.measure(linear, ROWS).plot().get_xlabel() == "site"


def test_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    figure = pu.measure(bright, IMAGES, nudge=pu.PatchNoise(size=2)).plot()
    assert isinstance(figure, pu.Figure) and figure._repr_svg_().startswith("<svg") and figure.png.startswith(b"\x89PNG")
