"""How a model responds to nudges of its inputs."""

from __future__ import annotations

import contextlib
import html
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _pudica, _tables
from ._estimate import Estimate
from ._figure import Figure
from ._inputs import Handed, handed, labels_of
from ._models import Adapter, adapt
from ._nudges import Nudge
from ._progress import Progress

_PRESETS = {
    "none": ([0.0], [1.0]),
    "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "cifar10": ([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
    "mnist": ([0.1307], [0.3081]),
    "bytes": ([0.0], [1.0 / 255.0]),
}


def measure(
    model: Any,
    inputs: Any,
    *,
    labels: Any = None,
    nudge: Nudge | str | Sequence[Nudge | str] | None = None,
    response: str | Sequence[str] | None = None,
    precision: float | None = None,
    budget: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    batch: int | None = None,
    outputs: str | None = None,
    takes: str | None = None,
    bits: str = "01",
    normalise: str | tuple[Sequence[float], Sequence[float]] | None = None,
    size: int | None = None,
    text: str | None = None,
    label: str | None = None,
    data: str | os.PathLike[str] | None = None,
    name: str | None = None,
    identity: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Measurement:
    """Measures how a model's answers change when its inputs are nudged: what `pudica measure` does, with models and arrays of your own.

    >>> import numpy as np, pudica as pu
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> r = pu.measure(lambda x: x[:, 0] - 2 * x[:, 1], rows, nudge=pu.FeatureNoise(scale=0.5), response="label")
    >>> r.by_site.shape, bool(r.by_site[1] > r.by_site[0] > r.by_site[2] == 0)
    ((3,), True)

    Parameters
    ----------
    model
        A torch module (asked in evaluation mode, without gradients, on its own device), a classifier of scikit-learn, any callable that makes
        scores ``[batch]`` or ``[batch, classes]`` of an array ``[batch, ...]``, or the path of a model that the command reads. A dictionary
        of several is compared on the same nudges of the same inputs.
    inputs
        An array whose first axis counts inputs: images ``[n, channels, height, width]``, rows ``[n, columns]``, tokens (integers)
        ``[n, length]``, bits (bool) ``[n, bits]``; a list of texts; or what the command takes: ``"bits:16"``, ``"cifar10:test"``, a file.
    labels
        The class of each input, for the responses "loss" and "accuracy".
    nudge, response
        What is done and what is compared, one or several; by default the usual ones for such inputs. Nudges may be written as for the command.
    precision, budget, sample, seed
        End once 95 % intervals are this narrow; ask at most so often; take so many inputs at random; name all randomness.
    batch, outputs, takes, bits, normalise, size
        Inputs at a time (64); "logits" or "probabilities"; "images", "rows", "tokens" or "texts" where an array could be several; bits as
        "01" or "signs"; what is done to pixels before the model sees them, a preset ("imagenet", ...) or (mean, std), which is the unit of
        noise; the side that pictures are resized to.
    out
        A folder to measure into. The same call continues there, if the model can be recognised: torch modules by their weights, classifiers
        by their content, functions by `identity`.
    """
    if bits not in ("01", "signs"):
        raise ValueError(f"bits={bits!r}: give '01' or 'signs'")
    if precision is not None and not precision > 0:
        raise ValueError(f"precision={precision}: give a number more than 0, as 0.005")
    named = dict(model) if isinstance(model, Mapping) else {name: model}
    if not named:
        raise ValueError("there is no model to measure")
    given = handed(inputs)
    models: list[str | Adapter] = []
    for called, one in named.items():
        if isinstance(one, (str, os.PathLike)):
            models.append(os.fspath(one) if called is None else f"{os.fspath(one)}:name={called}")
        else:
            models.append(adapt(one, called, outputs=outputs, batch=batch, signs=bits == "signs", identity=identity))
    adapters = [one for one in models if isinstance(one, Adapter)]
    first = adapters[0] if adapters else None
    if takes is None and first is not None and first.runtime == "scikit-learn" and not isinstance(given, str):
        takes = "texts" if given[0] == "texts" else "rows"
    nudges = [str(one) for one in _several(nudge)]
    responses = [str(one) for one in _several(response)]
    options = {
        "labels": labels_of(labels, first.classes if first else None),
        "class_names": first.class_names if first else [],
        "takes": takes,
        "nudges": nudges,
        "responses": responses,
        "precision": precision,
        "budget": budget,
        "sample": sample,
        "size": size,
        "seed": seed,
        "data": data if data is not None else os.environ.get("PUDICA_DATA") or None,
        "text": text,
        "label": label,
        "normalisation": _normalisation(normalise),
        "command": _command(models, given, nudges, responses, precision, seed),
        "temporary": out is None,
    }
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="pudica-")
        folder = Path(temporary.name)
    else:
        folder = Path(out)
    bar = Progress(progress)
    try:
        with contextlib.ExitStack() as states:
            for adapter in adapters:
                states.enter_context(adapter.measuring())
            _pudica.measure(models, given, options, folder, bar)
    finally:
        bar.close()
    if out is not None:
        _pudica.write_page(folder)
    return Measurement(folder, temporary)


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return [given] if isinstance(given, (str, Nudge)) else list(given)


def _normalisation(given: str | tuple[Sequence[float], Sequence[float]] | None) -> tuple[list[float], list[float]] | None:
    if given is None:
        return None
    if isinstance(given, str):
        if given not in _PRESETS:
            raise ValueError(f"normalise={given!r}: give one of {', '.join(_PRESETS)}, or (mean, std)")
        return _PRESETS[given]
    mean, std = ([float(value) for value in values] for values in given)
    if not mean or not std or not all(value > 0 for value in std):
        raise ValueError("normalise: give means and deviations of channels, the latter more than 0")
    return mean, std


def _command(
    models: list[str | Adapter], given: Handed, nudges: list[str], responses: list[str], precision: float | None, seed: int
) -> str:
    """The call, as far as a page can show it."""
    names = [one if isinstance(one, str) else one.name for one in models]
    inputs = repr(given) if isinstance(given, str) else f"{given[0]}{list(given[2])}" if len(given) == 4 else given[0]
    parts = [names[0] if len(names) == 1 else f"[{', '.join(names)}]", inputs]
    parts += [f"nudge={nudges}"] if nudges else []
    parts += [f"response={responses}"] if responses else []
    parts += [f"precision={precision}"] if precision else []
    return f"pudica.measure({', '.join(parts)}, seed={seed})"


class Result:
    """How one model responded to one nudge, in one response."""

    def __init__(self, measurement: Measurement, found: dict[str, Any]) -> None:
        self._measurement = measurement
        self.model: str = found["model"]
        """The model's name."""
        self.nudge: str = found["nudge"]
        """The nudge with its parameters."""
        self.response: str = found["response"]
        """What was compared."""
        self.mean = _estimate(found, found["inputs"])
        """The mean over inputs, sites and draws, with its standard error and interval."""
        self.inputs: int = found["inputs"]
        """How many inputs were asked about."""
        self.sites: float = found["sites"]
        """Sites per input; `mean` times this is the sum over sites (for bits, the average sensitivity)."""
        self.evaluations: int = found["evaluations"]
        """How often the model was asked."""
        self.exact: bool = found["exact"]
        """Whether nothing was sampled."""
        self.note: str | None = found.get("note")
        """What there is to know."""

    @property
    def std_error(self) -> float | None:
        """The standard error of the mean, over inputs."""
        return self.mean.std_error

    @property
    def ci95(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean."""
        return self.mean.ci95

    @cached_property
    def _profile(self) -> dict[str, Any] | None:
        key = (self.model, self.nudge, self.response)
        profiles = self._measurement.details["profiles"]
        return next((one for one in profiles if (one["model"], one["nudge"], one["response"]) == key), None)

    @property
    def by_site(self) -> NDArray[np.float64]:
        """The mean at each site over inputs and draws: a map [rows, columns] of patches, else one number per column, word or bit."""
        return self._sites([site["value"] for site in self._profile["by_site"]] if self._profile else [])

    @property
    def by_site_std_error(self) -> NDArray[np.float64]:
        """The standard errors of `by_site`, over inputs."""
        errors = [site["std_error"] for site in self._profile["by_site"]] if self._profile else []
        return self._sites([np.nan if error is None else error for error in errors])

    def _sites(self, values: list[float]) -> NDArray[np.float64]:
        array = np.array(values, dtype=np.float64)
        sites = self._profile["sites"] if self._profile else {}
        return array.reshape(sites["rows"], sites["columns"]) if sites.get("kind") == "grid" else array

    @property
    def by_class(self) -> dict[str, Estimate]:
        """The mean over the inputs of each class; empty without labels."""
        classes = self._profile["by_class"] if self._profile else []
        return {name: _estimate(value, count) for name, value, count in classes}

    @property
    def by_input(self) -> NDArray[np.float64]:
        """The mean over sites and draws of each input; NaN for those that were not asked about."""
        cells = self._measurement._inputs.get(f"{self.model} {self.nudge} {self.response}", [])
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)

    def __repr__(self) -> str:
        exact = ", exact" if self.exact else ""
        return f"Result({self.model}, {self.nudge}, {self.response}: {self.mean!r}{exact})"


class Measurement:
    """What :func:`measure` found. Numbers without a choice of result are those of the first: first model, first nudge, first response."""

    def __init__(self, folder: Path, temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.folder = folder
        """Where it lies; a folder without a name of its own is removed with this object."""
        self._temporary = temporary
        summary = folder / "summary.json"
        if not summary.is_file():
            raise ValueError(f"{folder}: the measurement has not come so far that anything is known; the same call continues")
        self.summary: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))
        """``summary.json``."""
        self.details: dict[str, Any] = {"profiles": [], "examples": [], "boolean": []}
        """``details.json``: by site, by class, examples."""
        details = folder / "details.json"
        if details.is_file():
            self.details = json.loads(details.read_text(encoding="utf-8"))
        self.results = [Result(self, found) for found in self.summary["results"]]
        """One for each model, nudge and response."""
        if not self.results:
            raise ValueError(f"{folder}: nothing was found: {self.summary.get('problem') or 'no response is a finite number'}")

    @cached_property
    def _inputs(self) -> _tables.Columns:
        path = self.folder / "inputs.csv"
        return _tables.read_csv(path) if path.is_file() else {}

    def result(self, *, model: str | None = None, nudge: Nudge | str | None = None, response: str | None = None) -> Result:
        """The first result of this model, nudge and response; what is not given may be any."""
        wanted = {"model": model, "nudge": None if nudge is None else str(nudge), "response": response}
        for found in self.results:
            if all(value is None or getattr(found, key) == value for key, value in wanted.items()):
                return found
        there = ", ".join(f"({one.model}, {one.nudge}, {one.response})" for one in self.results)
        raise KeyError(f"nothing was measured of {({key: value for key, value in wanted.items() if value})}; there are {there}")

    @property
    def mean(self) -> Estimate:
        """The mean over inputs, sites and draws."""
        return self.results[0].mean

    @property
    def std_error(self) -> float | None:
        """Its standard error, over inputs."""
        return self.results[0].std_error

    @property
    def ci95(self) -> tuple[float, float] | None:
        """Its 95 % interval."""
        return self.results[0].ci95

    @property
    def by_site(self) -> NDArray[np.float64]:
        """The mean at each site: a map [rows, columns] of patches, else one number per column, word or bit."""
        return self.results[0].by_site

    @property
    def by_input(self) -> NDArray[np.float64]:
        """The mean of each input."""
        return self.results[0].by_input

    @property
    def differences(self) -> list[dict[str, Any]]:
        """Paired differences between models."""
        return list(self.summary["differences"])

    def frame(self, kind: str | None = None) -> Any:
        """A row for each result, as a frame (see `Sweep.frame`)."""
        rows = [
            {
                "model": one.model,
                "nudge": one.nudge,
                "response": one.response,
                "value": float(one.mean),
                "std_error": one.std_error,
                "low": one.ci95[0] if one.ci95 else None,
                "high": one.ci95[1] if one.ci95 else None,
                "inputs": one.inputs,
                "evaluations": one.evaluations,
                "exact": one.exact,
            }
            for one in self.results
        ]
        return _tables.frame(_tables.of_records(rows), kind)

    def inputs_frame(self, kind: str | None = None) -> Any:
        """A row for each input: what each model makes of it, and its response to each nudge."""
        return _tables.frame(self._inputs, kind)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the folder of `pudica measure`: tables, figures, and the page ``report.html``, whose path it gives."""
        target = Path(folder)
        own = self.folder / "measure.json"
        if target.exists() and target.resolve() != self.folder.resolve() and any(target.iterdir()):
            other = target / "measure.json"
            if not other.is_file() or _identity(other) != _identity(own):
                raise ValueError(f"{target} holds something else; choose another folder")
        if target.resolve() != self.folder.resolve():
            shutil.copytree(self.folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".lock"))
        return Path(_pudica.write_page(target))

    def figure(self, name: str) -> Figure:
        """A figure of the page, by name."""
        if not (self.folder / "figures").is_dir():
            _pudica.write_page(self.folder)
        return Figure(self.folder / "figures", name)

    def plot(self, ax: Any = None, result: Result | None = None) -> Any:
        """Draws the means by site: with matplotlib on `ax` (which it gives back); without it, the first figure of the page."""
        result = result or self.results[0]
        try:
            import matplotlib.pyplot as plt  # pyright: ignore[reportMissingImports]
        except ImportError:
            if not (self.folder / "figures").is_dir():
                _pudica.write_page(self.folder)
            names = sorted(path.stem for path in (self.folder / "figures").glob("*.svg"))
            if not names:
                raise ValueError("there is nothing to draw") from None
            return Figure(self.folder / "figures", names[0])
        axes = plt.subplots()[1] if ax is None else ax
        values = result.by_site
        if values.ndim == 2:
            picture = axes.imshow(values, vmin=0 if (values >= 0).all() else None)
            axes.figure.colorbar(picture, ax=axes, label=result.response)
        elif values.size:
            axes.bar(np.arange(1, values.size + 1), values, yerr=1.96 * np.nan_to_num(result.by_site_std_error))
            axes.set_xlabel("site")
            axes.set_ylabel(result.response)
        else:
            axes.hist(result.by_input[~np.isnan(result.by_input)])
            axes.set_xlabel(result.response)
        axes.set_title(f"{result.model}, {result.nudge}")
        return axes

    def __repr__(self) -> str:
        lines = [f"{one.model}  {one.nudge}  {one.response}  {_interval(one)}" for one in self.results]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(one.model)}</td><td>{html.escape(one.nudge)}</td><td>{html.escape(one.response)}</td>"
            f"<td style='text-align:right'>{_interval(one)}</td><td style='text-align:right'>{one.inputs:,}</td>"
            f"<td style='text-align:right'>{one.evaluations:,}</td></tr>"
            for one in self.results
        )
        head = "".join(f"<th>{name}</th>" for name in ("model", "nudge", "response", "mean [95 %]", "inputs", "evaluations"))
        return f"<table><tr>{head}</tr>{rows}</table>{_map(self.results[0])}"


def _estimate(found: dict[str, Any], samples: int) -> Estimate:
    ci95 = found["ci95"]
    return Estimate(found["value"], found["std_error"], (ci95[0], ci95[1]) if ci95 else None, samples)


def _interval(result: Result) -> str:
    low, high = result.ci95 or (result.mean, result.mean)
    if result.exact or not low < high:
        return f"{float(result.mean):.6g}" + (" exact" if result.exact else "")
    return f"{float(result.mean):.4g} [{low:.4g}, {high:.4g}]"


def _map(result: Result) -> str:
    """A small heat map of patches, darker where the model is more sensitive."""
    values = result.by_site
    largest = values.max() if values.size else 0.0
    if values.ndim != 2 or not largest > 0:
        return ""
    rows, columns = values.shape
    cells = "".join(
        f'<rect x="{column}" y="{row}" width="1" height="1" fill="#08306b" fill-opacity="{max(values[row, column], 0) / largest:.3f}">'
        f"<title>{values[row, column]:.4g}</title></rect>"
        for row in range(rows)
        for column in range(columns)
    )
    return f'<svg viewBox="0 0 {columns} {rows}" width="{16 * columns}" style="border: 1px solid #999">{cells}</svg>'


def _identity(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")).get("identity")
