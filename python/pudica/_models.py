"""Models of every framework as one thing that makes scores of a batch of arrays."""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._recorded import Recorder

Scores = NDArray[np.float32]

#: Bytes from which on the digest of a tensor is made on a thread of its own.
_LARGE = 1 << 18


class Adapter:
    """A callable on arrays [batch, ...] that gives scores [batch] or [batch, classes]."""

    runtime = "Python"
    parameters: int | None = None
    #: Class labels in the order of the scores, where the model says them.
    classes: NDArray[Any] | None = None

    def __init__(self, model: Any, name: str, outputs: str, batch: int, signs: bool, identity: str | None) -> None:
        self.model, self.name, self.outputs, self.batch, self.signs = model, name, outputs, batch, signs
        self.named = identity

    @functools.cached_property
    def digest(self) -> str:
        """By what it is recognised: the name that somebody gave it, or what it is."""
        return self.identity() if self.named is None else _digest(self.named)

    @property
    def class_names(self) -> list[str]:
        return [] if self.classes is None else [str(name) for name in self.classes.tolist()]

    def identity(self) -> str:
        """What changes when the model's answers do. Of a function nothing is known, so its results are never continued."""
        if _is_function(self.model):
            return _digest(os.urandom(16).hex())
        try:
            return _digest(pickle.dumps(self.model))
        except Exception:  # whatever cannot be pickled says so in its own way
            return _digest(os.urandom(16).hex())

    #: Whether `begin` comes back before the scores are there, so that the next batch may be begun before `finish`.
    asynchronous = False

    #: Whether it has `hold` and `begin_edited`: it puts inputs that differ from others in few values together itself.
    assembles = False

    def begin(self, batch: Any) -> Any:
        """Asks about a batch."""
        return self.answer(batch)

    def finish(self, begun: Any, rows: int) -> Scores:
        """The scores of a batch of `rows` inputs that was begun."""
        return scores_of(begun, rows, self.name)

    def answer(self, batch: Any) -> Any:
        return self.model(batch)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Brings the model into the state it is measured in, and back."""
        yield


class Estimator(Adapter):
    """A classifier of scikit-learn, or what looks like one."""

    runtime = "scikit-learn"

    def __init__(self, model: Any, name: str, outputs: str | None, batch: int, signs: bool, identity: str | None) -> None:
        self.by: Callable[[Any], Any]
        if hasattr(model, "predict_proba") and outputs != "logits":
            self.by, outputs = model.predict_proba, "probabilities"
        elif hasattr(model, "decision_function"):
            self.by, outputs = model.decision_function, "logits"
        else:
            raise ValueError(f"{name} gives neither probabilities nor a decision function: give a function of its own scores")
        self.classes = np.asarray(model.classes_) if hasattr(model, "classes_") else None
        super().__init__(model, name, outputs, batch, signs, identity)

    @property
    def class_names(self) -> list[str]:
        # One score alone is that of the second class.
        one = self.outputs == "logits" and self.classes is not None and len(self.classes) == 2
        return [] if one else super().class_names

    def answer(self, batch: Any) -> Any:
        return self.by(batch)


class Module(Adapter):
    """A torch module: in evaluation mode, without gradients, on the device where its weights are."""

    runtime = "torch"

    def __init__(self, model: Any, name: str, outputs: str, batch: int, signs: bool, identity: str | None) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        self.torch = torch
        weights = list(model.parameters())
        first = next(iter([*weights, *model.buffers()]), None)
        self.device = torch.device("cpu") if first is None else first.device
        floating = [weight.dtype for weight in weights if weight.is_floating_point()]
        self.dtype = floating[0] if floating else torch.float32
        self.parameters = sum(weight.numel() for weight in weights)
        self.runtime = f"torch {torch.__version__}"
        self.asynchronous = self.device.type == "cuda"
        self.recorder = Recorder(torch, model, self.device) if self.device.type == "cuda" else None
        self.assembles = self.device.type in ("cpu", "cuda")
        #: What `hold` keeps.
        self.originals: Any = None
        self.places: Any = None
        super().__init__(model, name, outputs, batch, signs, identity)
        if identity is None:
            # On a thread of its own, while inputs are read.
            stream = None if self.recorder is None else torch.cuda.current_stream(self.device)
            aside = ThreadPoolExecutor(1)
            self.recognised = aside.submit(self.weights_digest, stream)
            aside.shutdown(wait=False)

    def identity(self) -> str:
        return self.recognised.result()

    def weights_digest(self, stream: Any) -> str:
        """A digest of structure and weights, which are asked for on this stream of a GPU."""
        whole = hashlib.sha256(repr(self.model).encode())
        small: dict[Any, list[Any]] = {}
        with ThreadPoolExecutor() as threads, self.torch.cuda.stream(stream), self.torch.inference_mode():
            large = []
            for name, weight in self.model.state_dict().items():
                if not hasattr(weight, "detach"):
                    whole.update(f"{name} {weight!r}".encode())
                    continue
                whole.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
                if weight.nbytes >= _LARGE:
                    large.append(threads.submit(self.tensor_digest, weight, stream))
                else:
                    small.setdefault(weight.dtype, []).append(weight.to(self.device).reshape(-1))
            # A copy from a GPU takes as long for one number as for thousands, so small ones come together.
            for alike in small.values():
                whole.update(self.tensor_digest(self.torch.cat(alike), stream))
            for digest in large:
                whole.update(digest.result())
        return whole.hexdigest()[:16]

    def tensor_digest(self, tensor: Any, stream: Any) -> bytes:
        """The SHA-256 of a tensor's bytes."""
        with self.torch.cuda.stream(stream), self.torch.inference_mode():
            plain = tensor.cpu().contiguous().reshape(-1)
        return hashlib.sha256(plain.view(self.torch.uint8).numpy().data).digest()

    def tensor(self, array: NDArray[Any]) -> Any:
        """An array as a tensor; one that a GPU fetches by itself, where the model is on one."""
        given = self.torch.from_numpy(array)
        if self.recorder is None or given.is_pinned():
            return given
        # By numpy, as torch copies more than 32768 values with all its threads, which wait for one another where other processes are at work.
        pinned = self.torch.empty(given.shape, dtype=given.dtype, pin_memory=True)
        np.copyto(pinned.numpy(), array)
        return pinned

    def asked(self, function: Callable[[Any], Any], array: NDArray[Any]) -> Any:
        """What a function answers to an array, as a tensor where the model is."""
        with self.torch.inference_mode():
            given = self.tensor(array)
            return function(given.to(self.device)) if self.recorder is None else self.recorder.ask(function, given)

    def answer(self, batch: Any) -> Any:
        if isinstance(batch, np.ndarray):
            return self.asked(self.whole, batch)
        with self.torch.inference_mode():
            return scores_in(self.model(batch))

    def whole(self, given: Any) -> Any:
        """The answer to a batch."""
        return scores_in(self.model(given.to(self.dtype) if given.is_floating_point() else given))

    def hold(self, originals: NDArray[np.float32], places: NDArray[np.int64] | None) -> None:
        """Keeps inputs [inputs, ...] that others will differ from, and where [sites, places] (None: as before), where the model is."""
        with self.torch.inference_mode():
            self.originals = self.kept(self.originals, originals)
            if places is not None:
                self.places = self.kept(self.places, places)

    def kept(self, before: Any, array: NDArray[Any]) -> Any:
        """An array where the model is: in the memory of the one before, which recordings know, if it fits there."""
        given = self.tensor(array)
        if before is not None and before.shape[1:] == given.shape[1:] and len(given) <= len(before):
            before[: len(given)].copy_(given, non_blocking=True)
            return before
        if self.recorder is not None:
            self.recorder.forget_all()
        return given.to(self.device, non_blocking=True)

    def edited(self, given: Any) -> Any:
        """The answer to inputs that differ from those held: the number of each one's original, the site of each, and (as bits) its values there."""
        rows = len(given) // (2 + self.places.shape[1])
        which, site = given[: 2 * rows].view(2, rows)
        batch = self.originals.index_select(0, which)
        values = given[2 * rows :].view(self.torch.float32).view(rows, -1)
        batch.view(rows, -1).scatter_(1, self.places.index_select(0, site), values)
        return scores_in(self.model(batch.to(self.dtype)))

    def begin_edited(self, numbers: NDArray[np.int32]) -> Any:
        """Asks about inputs that differ from those held."""
        return self.begun(self.asked(self.edited, numbers))

    def room(self, shape: list[int]) -> Any:
        """An array that the GPU reads by itself, while others are computed."""
        return self.torch.empty(shape, pin_memory=self.device.type == "cuda").numpy()

    def begin(self, batch: Any) -> Any:
        return self.begun(self.answer(batch))

    def begun(self, answer: Any) -> Any:
        """An answer that may not be there yet: a GPU sends it by itself."""
        if not self.asynchronous:
            return answer
        if not getattr(answer, "is_cuda", False):
            return answer, None
        with self.torch.inference_mode():
            copied = answer.to("cpu", non_blocking=True)
        return copied, self.torch.cuda.current_stream(answer.device).record_event()

    def finish(self, begun: Any, rows: int) -> Scores:
        if not self.asynchronous:
            return super().finish(begun, rows)
        answer, copied = begun
        if copied is not None:
            if self.recorder is not None:
                self.recorder.heard(copied.query())
            copied.synchronize()
        return super().finish(answer, rows)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        modules = [(module, module.training) for module in self.model.modules()]
        self.model.eval()
        # Once 32 MB were given back, glibc keeps what tensors of a few MB each give back instead of asking the system for it again: a third of the
        # time of a small ResNet. It stays so, as in any process that had an array of that size. The memory is never touched.
        self.torch.empty(32_000_000, dtype=self.torch.uint8, device="cpu")
        try:
            yield
        finally:
            for module, training in modules:
                module.training = training
            self.originals = self.places = None
            if self.recorder is not None:
                self.recorder.forget_all()


def adapt(
    model: Any,
    name: str | None,
    *,
    outputs: str | None,
    batch: int | None,
    signs: bool,
    identity: str | None,
) -> Adapter:
    """The adapter that fits a model."""
    torch = sys.modules.get("torch")
    called = name or _name_of(model)
    size = 64 if batch is None else batch
    if size < 1:
        raise ValueError(f"batch={size}: give at least 1 input at a time")
    if torch is not None and isinstance(model, torch.nn.Module):
        return Module(model, called, outputs or "logits", size, signs, identity)
    if hasattr(model, "predict") and hasattr(model, "fit") and not callable(model):
        return Estimator(model, called, outputs, size, signs, identity)
    if callable(model):
        return Adapter(model, called, outputs or "logits", size, signs, identity)
    raise TypeError(f"{type(model).__name__} is no model: give a callable on arrays, a torch module or a classifier")


def scores_in(answer: Any) -> Any:
    """The scores in what a model answers, which may be an object around them."""
    return getattr(answer, "logits", answer)


def scores_of(answer: Any, rows: int, name: str) -> Scores:
    """A model's answer to `rows` inputs as float32 [rows, classes]."""
    answer = scores_in(answer)
    if hasattr(answer, "detach"):  # a torch tensor, wherever it is
        answer = answer.detach().cpu()
        answer = answer.float().numpy() if answer.is_floating_point() else answer.numpy()
    try:
        scores = np.asarray(answer)
    except ValueError as error:
        raise ValueError(f"{name} gave rows of different lengths, not scores [inputs, classes]") from error
    if scores.dtype.kind not in "biuf":
        kind = type(answer).__name__ if scores.dtype.kind == "O" else str(scores.dtype)
        raise ValueError(f"{name} gave a {kind}, not an array of scores [inputs, classes]")
    if scores.ndim == 1 and len(scores) == rows:
        scores = scores.reshape(rows, 1)
    if scores.ndim != 2 or scores.shape[0] != rows or scores.shape[1] == 0:
        raise ValueError(
            f"{name} gave an array of shape {scores.shape} for {rows} input{'s' if rows != 1 else ''}; "
            f"scores have the shape (inputs,) or (inputs, classes)"
        )
    return np.ascontiguousarray(scores, dtype=np.float32)


def _name_of(model: Any) -> str:
    own = getattr(model, "__name__", None)
    return "function" if own == "<lambda>" else str(own) if own else type(model).__name__


def _is_function(model: Any) -> bool:
    """Whether it is a function, or one that was wrapped (`jax.jit`, `functools.partial`): what is pickled of those is their name."""
    if isinstance(model, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return True
    inside = model.func if isinstance(model, functools.partial) else getattr(model, "__wrapped__", None)
    return inside is not None and _is_function(inside)


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]
