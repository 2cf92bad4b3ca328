"""Real models of scikit-learn, torch and JAX; those on a GPU are in test_gpu.py."""

import functools

import numpy as np
import pytest

import pudica as pu
from pudica._models import Module

ROWS = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
IMAGES = np.random.default_rng(1).random(size=(12, 3, 16, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def fitted():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    words = np.array(["cold", "mild", "warm"])[np.digitize(ROWS[:, 0] + 0.3 * ROWS[:, 1], [-0.5, 0.5])]
    return LogisticRegression().fit(ROWS, words), words


@pytest.fixture(scope="module", name="torch")
def installed_torch():
    return pytest.importorskip("torch")


class TestScikitLearn:
    def test_a_classifier_with_classes_of_its_own(self, fitted):
        model, words = fitted
        r = pu.measure(model, ROWS, labels=words, nudge=pu.FeatureNoise(scale=0.5, draws=3))
        about = r.summary["models"][0]
        assert about["clean_accuracy"]["value"] == pytest.approx(model.score(ROWS, words))
        assert about["class_names"] == ["cold", "mild", "warm"] and about["outputs"] == "probabilities"
        assert set(r.results[0].by_class) == {"cold", "mild", "warm"}
        assert r.by_site[0] > r.by_site[1] > max(r.by_site[2:])
        # By hand: the same model as a plain function of its probabilities.
        by_hand = pu.measure(lambda x: model.predict_proba(x), ROWS, outputs="probabilities", nudge=pu.FeatureNoise(scale=0.5, draws=3), response="label")
        assert by_hand.mean == r.mean

    def test_a_decision_function_and_whole_numbers(self):
        pytest.importorskip("sklearn")
        from sklearn.svm import LinearSVC

        counts = np.random.default_rng(0).integers(0, 10, size=(100, 3))
        labels = np.where(counts[:, 0] > counts[:, 1], "more", "less")
        model = LinearSVC().fit(counts, labels)
        r = pu.measure(model, counts, labels=labels, nudge="feature-resample")
        assert r.summary["models"][0]["clean_accuracy"]["value"] == pytest.approx(model.score(counts, labels))
        assert r.result(response="label").by_site[2] < 0.1 < r.by_site[0]

    def test_it_continues_by_its_content(self, fitted, tmp_path):
        model, words = fitted
        first = pu.measure(model, ROWS, response="label", out=tmp_path)
        assert pu.measure(model, ROWS, response="label", out=tmp_path).mean == first.mean

    def test_what_gives_no_scores_is_refused(self):
        pytest.importorskip("sklearn")
        from sklearn.cluster import KMeans

        with pytest.raises(ValueError, match="KMeans gives neither"):
            pu.measure(KMeans(2, n_init=1).fit(ROWS), ROWS)
        with pytest.raises(ValueError, match="none of the model's classes"):
            from sklearn.linear_model import LogisticRegression

            pu.measure(LogisticRegression().fit(ROWS, ROWS[:, 0] > 0), ROWS, labels=["x"] * 300)


class TestTorch:
    def net(self, torch):
        torch.manual_seed(0)
        nn = torch.nn
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(8 * 14 * 14, 5))

    def test_a_module_is_asked_in_evaluation_mode_and_given_back_as_it_was(self, torch):
        net = self.net(torch).train()
        net[1].eval()
        before = {name: value.clone() for name, value in net.state_dict().items()}
        r = pu.measure(net, IMAGES, nudge=pu.PatchNoise(size=4, variance=1.0), response=["label", "l2"])
        assert net.training and net[0].training and not net[1].training
        assert all((before[name] == value).all() for name, value in net.state_dict().items())
        assert all(weight.grad is None for weight in net.parameters())
        assert r.by_site.shape == (4, 4) and r.summary["models"][0]["parameters"] == sum(w.numel() for w in net.parameters())
        net.eval()

        def by_hand(x):
            with torch.no_grad():
                return net(torch.from_numpy(x)).numpy()

        again = pu.measure(by_hand, IMAGES, nudge=pu.PatchNoise(size=4, variance=1.0), response=["label", "l2"], name="Sequential")
        assert [one["value"] for one in again.summary["results"]] == [one["value"] for one in r.summary["results"]]
        assert (again.by_input == r.by_input).all()

    def test_a_hand_written_loop_finds_the_same(self, torch):
        net = self.net(torch).eval()
        r = pu.measure(net, IMAGES, nudge=pu.PatchNoise(size=4, variance=1.0, draws=40), response="l2")
        generator = torch.Generator().manual_seed(0)
        images, shifts = torch.from_numpy(IMAGES), []
        with torch.no_grad():
            clean = net(images)
            for _ in range(40):
                for row in range(0, 16, 4):
                    for column in range(0, 16, 4):
                        touched = images.clone()
                        touched[:, :, row : row + 4, column : column + 4] += torch.randn(12, 3, 4, 4, generator=generator)
                        shifts.append((net(touched) - clean).norm(dim=1))
        by_hand = torch.stack(shifts).mean(0)
        # Both average over 640 draws per image, whose own error is far below that over images.
        assert float(by_hand.mean()) == pytest.approx(r.mean, rel=0.03)

    @pytest.mark.parametrize("nudge", [pu.PatchNoise(size=4, variance=1.0, draws=3), pu.PatchReplace(size=8, draws=2)])
    @pytest.mark.parametrize("normalise", [None, "imagenet"])
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_only_what_differs_is_handed_over_and_the_model_sees_the_same_to_the_bit(self, torch, monkeypatch, nudge, normalise, asynchronous):
        net = self.net(torch).eval()
        seen = []
        net.register_forward_pre_hook(lambda _, given: seen.append(given[0].clone()))
        # As on a GPU: each answer is looked at after the next batch was begun.
        monkeypatch.setattr(Module, "asynchronous", property(lambda _: asynchronous, lambda *_: None))
        handed = []
        tensor = Module.tensor
        monkeypatch.setattr(Module, "tensor", lambda self, array: handed.append(array) or tensor(self, array))
        # 40 inputs of 16 patches: several chunks of work, in batches of which the last is smaller.
        images = np.random.default_rng(2).random(size=(40, 3, 16, 16)).astype(np.float32)

        def measured(assembles):
            seen.clear(), handed.clear()
            monkeypatch.setattr(Module, "assembles", property(lambda _: assembles, lambda *_: None))
            r = pu.measure(net, images, nudge=nudge, response=["label", "l2"], normalise=normalise, batch=26)
            return r, list(seen), list(handed)

        (whole, batches, _), (r, again, arrays) = measured(False), measured(True)
        assert len(batches) > 10 and len(batches) == len(again)
        assert all(torch.equal(one, other) for one, other in zip(batches, again))
        assert r.summary["results"] == whole.summary["results"] and r.details == whole.details and r.mean > 0
        assert (r.by_input == whole.by_input).all()
        # Two numbers and the patch of each, four bytes each, and every image once more than untouched.
        patches = [array for array in arrays if array.dtype == np.int32]
        side = int(str(nudge).split("size=")[1].split(",")[0])
        assert sum(array.nbytes for array in patches) == 4 * (2 + 3 * side**2) * r.results[0].evaluations
        assert sum(array.nbytes for array in arrays if array.dtype == np.float32) == 2 * images.nbytes

    def test_inputs_are_put_together_without_a_look_at_their_values(self, torch):
        # On torch's meta device there are no values: whatever would wait for a GPU raises there.
        adapter = Module(self.net(torch).eval().to("meta"), "net", "logits", 64, False, "net")
        adapter.hold(IMAGES, np.zeros((16, 48), dtype=np.int64))
        answer = adapter.begin_edited(np.zeros(7 * 50, dtype=np.int32))
        assert answer.is_meta and answer.shape == (7, 5)

    def test_an_exception_at_a_touched_input_names_it(self, torch):
        net = self.net(torch).eval()

        class Broken(torch.nn.Module):
            def forward(self, x):
                seventh = x[:, 0, 15, 15] == float(IMAGES[7, 0, 15, 15])
                if (seventh & (x[:, 0, 0, 0] != float(IMAGES[7, 0, 0, 0]))).any():
                    raise KeyError("seven")
                return net(x)

        with pytest.raises(KeyError) as raised:
            pu.measure(Broken(), IMAGES, nudge=pu.PatchNoise(size=4, variance=1.0), batch=10)
        assert raised.value.pudica_input == 7 and "touched input 7" in raised.value.__notes__[0]

    def test_tensors_types_and_outputs(self, torch):
        net = self.net(torch).eval()
        expected = pu.measure(net, IMAGES, response="label").mean
        assert pu.measure(net, torch.from_numpy(IMAGES), response="label").mean == expected
        assert pu.measure(net.double(), IMAGES, response="label").mean == pytest.approx(expected, abs=0.02)
        net.float()

        class Output:
            def __init__(self, logits):
                self.logits = logits

        class Wrapped(torch.nn.Module):
            def forward(self, x):
                return Output(net(x))

        assert pu.measure(Wrapped(), IMAGES, response="label").mean == expected

    def test_tokens_reach_an_embedding(self, torch):
        nn = torch.nn
        net = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(48, 3))
        tokens = np.random.default_rng(0).integers(0, 20, size=(20, 6))
        assert pu.measure(net, tokens, nudge=pu.TokenReplace(vocabulary=20), response="l2").mean > 0

    def test_its_exception_is_itself(self, torch):
        with pytest.raises(RuntimeError, match="mat1 and mat2") as raised:
            pu.measure(torch.nn.Linear(7, 2), ROWS)
        assert "Linear raised RuntimeError" in raised.value.__notes__[0] and raised.value.pudica_input == 0

    def test_it_continues_by_its_weights(self, torch, tmp_path):
        net = self.net(torch)
        first = pu.measure(net, IMAGES, response="label", out=tmp_path)
        assert pu.measure(net, IMAGES, response="label", out=tmp_path).mean == first.mean
        with torch.no_grad():
            net[0].weight += 1
        with pytest.raises(ValueError, match="another measurement"):
            pu.measure(net, IMAGES, response="label", out=tmp_path)


class TestJax:
    def test_a_function_of_jax_is_a_callable(self):
        jax = pytest.importorskip("jax")
        weights = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
        net = jax.jit(lambda x: jax.numpy.tanh(x) @ weights)
        r = pu.measure(net, ROWS, nudge=pu.FeatureNoise(scale=0.5), response=["label", "l2"], name="net")
        assert r.by_site.shape == (4,) and r.mean > 0
        again = pu.measure(lambda x: np.asarray(net(x)), ROWS, nudge=pu.FeatureNoise(scale=0.5), response=["label", "l2"], name="net")
        assert (again.by_input == r.by_input).all()

    @pytest.mark.parametrize("wrapped_by", ["jax.jit", "functools.partial"])
    def test_wrapped_functions_continue_only_if_somebody_names_them(self, wrapped_by, tmp_path):
        wrap = functools.partial if wrapped_by == "functools.partial" else pytest.importorskip("jax").jit
        asked = {"inputs": ROWS, "response": "label", "name": "model"}
        first = pu.measure(wrap(difference), **asked, out=tmp_path / "named", identity="v1")
        assert pu.measure(wrap(difference), **asked, out=tmp_path / "named", identity="v1").mean == first.mean
        # A function's own name, which is all that can be pickled, says nothing about what it computes.
        pu.measure(wrap(difference), **asked, out=tmp_path / "unnamed")
        with pytest.raises(ValueError, match="another measurement"):
            pu.measure(wrap(difference), **asked, out=tmp_path / "unnamed")


def difference(x):
    return x[:, 0] - x[:, 1]
