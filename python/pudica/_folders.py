"""Folders that `pudica run` and `pudica measure` write: as data, without Rust."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _tables
from ._figure import Figure
from ._measure import Measurement


def open(folder: str | os.PathLike[str]) -> Any:
    """Opens what lies in a folder: a :class:`Sweep` of `pudica run`, one :class:`Run` of it, or a :class:`Measurement`.

    >>> import pudica as pu
    >>> pu.open("runs/no-such-sweep")
    Traceback (most recent call last):
        ...
    FileNotFoundError: runs/no-such-sweep: there is no such folder
    """
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: there is no such folder")
    if (path / "sweep.json").is_file():
        return Sweep(path)
    if (path / "measure.json").is_file():
        return Measurement(path)
    if (path / "config.json").is_file():
        return Run(path)
    raise ValueError(f"{path}: neither a sweep, nor a run, nor a measurement lies here (no sweep.json, config.json or measure.json)")


class Run:
    """One run of a sweep."""

    def __init__(self, path: Path, label: str = "") -> None:
        self.path = path
        """Its folder."""
        self.id = path.name
        """The hash of its settings."""
        self.label = label or path.name
        """What tells it from the other runs."""

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as nested dictionaries."""
        return _read(self.path / "config.json")

    @property
    def summary(self) -> dict[str, Any] | None:
        """How it ended; None while it has not."""
        path = self.path / "summary.json"
        return _read(path) if path.is_file() else None

    @property
    def measures(self) -> dict[str, float | None]:
        """Its final measures; none while it has not ended."""
        summary = self.summary
        return {} if summary is None else dict(summary["measures"])

    def metrics(self, kind: str | None = None) -> Any:
        """What was measured during training, a row for each line, as a frame (see `Sweep.frame`)."""
        path = self.path / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        return _tables.frame(_tables.of_records([json.loads(line) for line in lines if line.endswith("}")]), kind)

    def state_dict(self) -> dict[str, Any]:
        """The trained weights by name: torch tensors where torch is imported or installed, else numpy arrays."""
        path = self.path / "weights.safetensors"
        if not path.is_file():
            raise FileNotFoundError(f"{path}: the run has no weights (it is not finished, or was copied without them)")
        arrays = read_safetensors(path)
        try:
            import torch  # pyright: ignore[reportMissingImports]
        except ImportError:
            return dict(arrays)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def __repr__(self) -> str:
        state = "not finished" if self.summary is None else self.summary["outcome"]
        return f"Run({self.label}, {state}, {str(self.path)!r})"


class Sweep:
    """A sweep of `pudica run`: its runs, their measures as a frame, the figures of its page."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """Its folder."""
        self.record = _read(path / "sweep.json")
        """What was planned: recipe, scale, overrides, command."""
        self.runs = [Run(path / "runs" / run["id"], run.get("label", "")) for run in self.record["runs"]]
        """All runs, in the order of the plan."""

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, run: int | str) -> Run:
        """A run by its place, id or label."""
        if isinstance(run, int):
            return self.runs[run]
        for found in self.runs:
            if run in (found.id, found.label):
                return found
        raise KeyError(run)

    def frame(self, kind: str | None = None) -> Any:
        """A row for each run that has ended: what varies, outcome, measures, seconds.

        A polars frame where polars is installed, else one of pandas, else a dictionary of numpy arrays; `kind` asks for one of "polars",
        "pandas" and "numpy".
        """
        return self._table("results", kind)

    def curves(self, kind: str | None = None) -> Any:
        """A row for each line of metrics of each run."""
        return self._table("curves", kind)

    def figure(self, name: str) -> Figure:
        """A figure of the page, as ``fig1``."""
        return Figure(self.path / "figures", name)

    @property
    def figures(self) -> list[str]:
        """The names of all figures."""
        return sorted(path.stem for path in (self.path / "figures").glob("*.svg"))

    @property
    def page(self) -> Path:
        """The page to open in a browser."""
        return self.path / "report.html"

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """What was published, and what these runs say about it."""
        path = self.path / "summary.json"
        return list(_read(path).get("verdicts", [])) if path.is_file() else []

    def _table(self, name: str, kind: str | None) -> Any:
        path = self.path / f"{name}.csv"
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no run has ended yet, or the report is not written (`pudica report {self.path}`)")
        return _tables.frame(_tables.read_csv(path), kind)

    def __repr__(self) -> str:
        ended = sum(1 for run in self.runs if (run.path / "summary.json").is_file())
        return f"Sweep({self.record['recipe']}, {ended} of {len(self.runs)} runs, {str(self.path)!r})"

    def _repr_html_(self) -> str:
        ended = sum(1 for run in self.runs if (run.path / "summary.json").is_file())
        title, about = html.escape(self.record["title"]), html.escape(self.record["about"])
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(verdict['verdict'])}</td>"
            f"<td style='text-align:left'>{html.escape(verdict['question'])}</td></tr>"
            for verdict in self.verdicts
            if "verdict" in verdict and "question" in verdict
        )
        verdicts = f"<table><tr><th>here</th><th>question</th></tr>{rows}</table>" if rows else ""
        command = html.escape(self.record["command"])
        return f"<p><b>{title}</b> ({ended} of {len(self.runs)} runs)</p><p>{about}</p>{verdicts}<p><code>{command}</code></p>"


_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, read into memory."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or 8 + length > len(content):
        raise ValueError(f"{path}: is no safetensors file, or cut short")
    head = json.loads(content[8 : 8 + length])
    arrays = {}
    for name, about in head.items():
        if name == "__metadata__":
            continue
        if about["dtype"] not in _TYPES:
            raise ValueError(f"{path}: {name} is of type {about['dtype']}, which is not read here")
        start, end = about["data_offsets"]
        values = np.frombuffer(content[8 + length + start : 8 + length + end], dtype=_TYPES[about["dtype"]])
        arrays[name] = values.reshape(about["shape"]).copy()
    return arrays


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: is not readable ({error})") from None
    return dict(found)
