"""Inputs as they are handed over to Rust: arrays as bytes, texts as pairs, files by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Handed = str | tuple[str, str, Sequence[int], NDArray[np.uint8]] | tuple[str, Sequence[tuple[str, str | None]]]


def as_array(values: Any) -> NDArray[Any]:
    """Arrays of any framework, and lists of numbers, as numpy arrays."""
    if hasattr(values, "detach"):  # torch
        values = values.detach().cpu().numpy()
    elif hasattr(values, "to_numpy"):  # pandas, polars
        values = values.to_numpy()
    return np.asarray(values)


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The values of an array, little-endian, the last axis varying fastest. Copied only where they do not lie so."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)


def handed(inputs: Any) -> Handed:
    """What `inputs` are."""
    if isinstance(inputs, (str, os.PathLike)):
        return os.fspath(inputs)
    texts = _texts(inputs)
    if texts is not None:
        return ("texts", texts)
    try:
        array = as_array(inputs)
    except ValueError as error:
        raise ValueError("inputs differ in shape: give one array whose first axis counts them") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"inputs of type {array.dtype} are not read here: give numbers, texts or the name of a file")
    if array.ndim < 2:
        raise ValueError(f"inputs have the shape {array.shape}: the first axis counts inputs, at least one more is an input's own")
    return ("array", array.dtype.name, array.shape, as_bytes(array))


def _texts(inputs: Any) -> list[tuple[str, str | None]] | None:
    if hasattr(inputs, "tolist") and getattr(getattr(inputs, "dtype", None), "kind", "") in "UO":
        inputs = inputs.tolist()
    if not isinstance(inputs, (list, tuple)) or not inputs:
        return None
    if all(isinstance(text, str) for text in inputs):
        return [(text, None) for text in inputs]
    pairs = all(isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) for pair in inputs)
    return [(str(one), str(other)) for one, other in inputs] if pairs else None


def labels_of(labels: Any, classes: NDArray[Any] | None) -> list[int] | None:
    """The class of each input as a number from 0; where the model knows its classes by other names, by those."""
    if labels is None:
        return None
    array = as_array(labels).reshape(-1)
    if classes is not None:
        places = {value: place for place, value in enumerate(classes.tolist())}
        try:
            return [places[value] for value in array.tolist()]
        except KeyError as error:
            raise ValueError(f"the label {error.args[0]!r} is none of the model's classes, {classes.tolist()}") from None
    if array.dtype.kind == "f" and np.all(array == np.floor(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise ValueError(f"labels of type {array.dtype}: give whole numbers from 0")
    if len(array) and int(array.min()) < 0:
        raise ValueError(f"label {int(array.argmin())} is {int(array.min())}; classes are numbered from 0")
    return [int(value) for value in array]
