"""Exact analysis of Boolean functions."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _pudica
from ._estimate import Estimate
from ._inputs import as_array, as_bytes

#: A callable is asked about all strings up to this many bits.
_MOST_BITS = 26
#: Rows that a callable is given at a time.
_BLOCK = 1 << 16


def boolean(f: str | Callable[[NDArray[np.uint8]], Any] | Boolean | Any, n: int | None = None, *, name: str | None = None) -> Boolean:
    """A Boolean (or real) function of bits, to be analysed exactly.

    >>> import numpy as np, pudica as pu
    >>> pu.boolean("majority", n=3).influences
    array([0.5, 0.5, 0.5])
    >>> pu.boolean("x1 & (x2 | !x3)").average_sensitivity
    1.25
    >>> pu.boolean(np.array([0, 1, 1, 0, 1, 0, 0, 1], bool)).degree
    3
    >>> pu.boolean(lambda x: x.sum(axis=1) % 2, n=10).average_sensitivity
    10.0

    Parameters
    ----------
    f
        A name of the catalogue (``pudica boolean --list``) or an expression over x1, x2, ...; an array of 2^n values, of which entry r is that of
        the string whose bits, x1 first, spell r (0 and 1, bool, ±1 with +1 as 0, or real numbers); or a callable that gives one value for
        each row of an array of bits ``[rows, n]``.
    n
        The number of variables, where `f` does not tell.
    """
    if isinstance(f, Boolean):
        return f
    if isinstance(f, str):
        try:
            return Boolean(_pudica.Function.given(f, n))
        except ValueError as error:
            if n is None and "say how many variables" in str(error):
                raise ValueError(f"{f} has any number of variables: say how many, as in pu.boolean({f!r}, n=20)") from None
            raise
    if callable(f) and not hasattr(f, "__array__"):
        values = _values_of(f, n)
        own = getattr(f, "__name__", type(f).__name__)
        return _of_table(values, name or ("function" if own == "<lambda>" else str(own)))
    table = as_array(f).reshape(-1)
    if n is not None and n >= 0 and table.size != 1 << n:
        raise ValueError(f"the table has {table.size} values, but n={n} asks for 2^{n} = {1 << n}")
    return _of_table(table, name or "table")


def _of_table(table: NDArray[Any], name: str) -> Boolean:
    if table.dtype.kind not in "biuf":
        raise ValueError(f"a table of {table.dtype} is not read here: give bool, whole or real numbers")
    return Boolean(_pudica.Function.table(table.dtype.name, as_bytes(table), name))


def _values_of(f: Callable[[NDArray[np.uint8]], Any], n: int | None) -> NDArray[Any]:
    """The values of a callable on all strings, in the order of a truth table."""
    if n is None:
        raise ValueError("say how many bits the function reads: pu.boolean(f, n=10)")
    if not 1 <= n <= _MOST_BITS:
        raise ValueError(f"n={n}: a callable is asked about all 2^n strings, for n from 1 to {_MOST_BITS}")
    shifts = np.arange(n - 1, -1, -1)
    blocks = []
    for start in range(0, 1 << n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, 1 << n))
        bits = (rows[:, None] >> shifts & 1).astype(np.uint8)
        values = as_array(f(bits))
        if values.shape == (len(rows), 1):
            values = values.reshape(-1)
        if values.shape != (len(rows),):
            raise ValueError(
                f"the function gave an array of shape {values.shape} for bits of shape {bits.shape}: one value for each row is needed "
                f"(x1 is x[:, 0])"
            )
        blocks.append(values)
    return np.concatenate(blocks)


class Boolean:
    """A function of n bits. What is asked about is computed once, when it is asked first; values count as ±1 (see `analysis`)."""

    def __init__(self, function: _pudica.Function) -> None:
        self._function = function
        self._known: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """What it is called."""
        return self._function.name

    @property
    def n(self) -> int:
        """The number of variables."""
        return self._function.n

    def analysis(
        self,
        measures: Sequence[str] | None = None,
        *,
        convention: str = "pm1",
        rho: float | Sequence[float] = 0.9,
        top: int = 8,
        p: float | None = None,
        fix: Mapping[str, int] | None = None,
        method: str | None = None,
        precision: float | None = None,
        time_limit: float = 60.0,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Everything that ``pudica boolean --json`` tells, or the `measures` asked for.

        >>> import pudica as pu
        >>> pu.boolean("parity", n=4).analysis(["nonlinearity", "gf2_degree"])["gf2_degree"]
        1

        Parameters
        ----------
        convention
            "pm1" (values ±1, the theory's) or "01"; squared measures differ by a factor of 4.
        rho, top, p, fix
            Correlations for the noise stability; how many of the largest coefficients; a probability of ones for biased measures; variables
            that are fixed, as ``{"x3": 1}``.
        method, precision, time_limit, seed
            "exact" or "sampled"; for sampling the half-width of the 95 % interval, the most seconds, the random inputs. By default exact up to
            n = 36, sampled beyond.
        """
        rhos = [float(rho)] if isinstance(rho, (int, float)) else [float(one) for one in rho]
        fixed = ",".join(f"{variable}={bit}" for variable, bit in fix.items()) if fix else None
        found: dict[str, Any] = json.loads(
            self._function.analyse(
                None if measures is None else list(measures), convention, rhos, top, p, method, precision, time_limit, seed, fixed
            )
        )
        return found

    def _one(self, measure: str) -> Any:
        """One measure of values ±1."""
        if measure not in self._known:
            found = self.analysis([measure])
            self._known[measure] = _quantity(found[measure])
        return self._known[measure]

    @property
    def mean(self) -> float:
        """E[f]."""
        value: float = self._one("mean")
        return value

    @property
    def variance(self) -> float:
        """Var[f]."""
        value: float = self._one("variance")
        return value

    @property
    def average_sensitivity(self) -> float:
        """as(f): the mean number of bits whose flip changes f. Where n is too large for a table, an :class:`Estimate`."""
        value: float = self._one("average_sensitivity")
        return value

    @property
    def influences(self) -> NDArray[np.float64]:
        """The influence of x1, x2, ...: how often flipping it changes f."""
        return np.array(self._one("influences"), dtype=np.float64)

    @property
    def max_sensitivity(self) -> float:
        """The largest number of sensitive bits of any input."""
        value: float = self._one("max_sensitivity")
        return value

    @property
    def sensitivity_histogram(self) -> NDArray[np.int64]:
        """How many inputs have 0, 1, ..., n sensitive bits."""
        return np.array(self._one("sensitivity_histogram"), dtype=np.int64)

    @property
    def degree(self) -> int:
        """The degree as a real polynomial."""
        value: int = self._one("degree")
        return value

    @property
    def degree_profile(self) -> NDArray[np.float64]:
        """The Fourier weight at degree 0, 1, ..., n."""
        return np.array(self._one("degree_profile"), dtype=np.float64)

    @property
    def spectral_norm(self) -> float:
        """The sum of the sizes of all coefficients."""
        value: float = self._one("spectral_norm")
        return value

    @property
    def block_sensitivity(self) -> int:
        """bs(f), for n up to 12."""
        value: int = self._one("block_sensitivity")
        return value

    @property
    def certificate_complexity(self) -> int:
        """C(f), for n up to 12."""
        value: int = self._one("certificate_complexity")
        return value

    @property
    def decision_tree_depth(self) -> int:
        """D(f), for n up to 12."""
        value: int = self._one("decision_tree_depth")
        return value

    def noise_stability(self, rho: float) -> float:
        """E[f(x) f(y)] for y a copy of x with correlation `rho` at each bit."""
        value: float = self.analysis(["noise_stability"], rho=rho)["noise_stability"][0]["value"]
        return value

    def fourier(self, convention: str = "pm1") -> NDArray[np.float64]:
        """All 2^n Fourier-Walsh coefficients. The bits of an index, x1 being the most significant, tell the set.

        >>> import pudica as pu
        >>> pu.boolean("x1 & x2").fourier()
        array([ 0.5,  0.5,  0.5, -0.5])
        """
        return self._function.fourier(convention)

    @property
    def table(self) -> NDArray[Any]:
        """All 2^n values, in the order of a truth table: bool, or float64 where the function is real."""
        if "table" not in self._known:
            bits = self._function.bits()
            values: Any = self._function.reals() if bits is None else bits
            values.flags.writeable = False
            self._known["table"] = values
        found: NDArray[Any] = self._known["table"]
        return found

    def restrict(self, **fixed: int) -> Boolean:
        """The function of the other variables, where some are fixed.

        >>> import pudica as pu
        >>> pu.boolean("majority", n=3).restrict(x1=1).table
        array([False,  True,  True,  True])
        """
        place: list[Any] = [slice(None)] * self.n
        for variable, bit in fixed.items():
            index = int(variable[1:]) if variable[:1] == "x" and variable[1:].isdigit() else 0
            if not 1 <= index <= self.n or bit not in (0, 1):
                raise ValueError(f"{variable}={bit}: give a variable from x1 to x{self.n} and the bit 0 or 1")
            place[index - 1] = bit
        if all(not isinstance(one, slice) for one in place):
            raise ValueError("all variables are fixed: at least one must be left")
        values = self.table.reshape([2] * self.n)[tuple(place)].reshape(-1)
        return _of_table(values, f"{self.name} with {', '.join(f'{name}={bit}' for name, bit in fixed.items())}")

    def __call__(self, x: Any) -> NDArray[Any]:
        """The values at strings of bits, ``[rows, n]`` or one ``[n]``."""
        bits = as_array(x)
        if bits.shape[-1:] != (self.n,):
            raise ValueError(f"bits of shape {bits.shape}: the last axis must have {self.n}")
        row = (bits.astype(np.int64) << np.arange(self.n - 1, -1, -1)).sum(axis=-1)
        found: NDArray[Any] = self.table[row]
        return found

    def __repr__(self) -> str:
        return f"Boolean({self.name!r}, n={self.n})"

    def _repr_html_(self) -> str:
        small = self.n <= 20
        found = self.analysis(None if small and self.n <= 10 else ["mean", "average_sensitivity", "influences"])
        if small and self.n > 10:
            found |= self.analysis(["degree", "degree_profile", "max_sensitivity"])
        rows = [
            (label, repr(_quantity(found[key])))
            for key, label in _SHOWN.items()
            if found.get(key) is not None and not isinstance(found[key], list)
        ]
        table = "".join(f"<tr><td style='text-align:left'>{label}</td><td>{html.escape(value)}</td></tr>" for label, value in rows)
        return f"<p><b>{html.escape(self.name)}</b>, n = {self.n}</p><table>{table}</table>{_bars(found.get('degree_profile'))}"


_SHOWN = {
    "mean": "mean",
    "average_sensitivity": "average sensitivity",
    "max_sensitivity": "max sensitivity",
    "degree": "degree",
    "gf2_degree": "degree over GF(2)",
    "spectral_norm": "spectral norm",
    "nonlinearity": "nonlinearity",
    "block_sensitivity": "block sensitivity",
    "certificate_complexity": "certificate complexity",
    "decision_tree_depth": "decision tree depth",
    "balanced": "balanced",
    "monotone": "monotone",
    "symmetric": "symmetric",
}


def _quantity(found: Any) -> Any:
    """A sampled number as an estimate; everything else as it is."""
    if isinstance(found, dict) and "value" in found and "ci95" in found:
        low, high = found["ci95"]
        return Estimate(found["value"], (high - low) / 2 / 1.959963984540054, (low, high), found["samples"])
    if isinstance(found, list):
        return [_quantity(one) for one in found]
    return found


def _bars(profile: list[float] | None) -> str:
    """The degree profile as small bars."""
    if not profile or not max(profile) > 0:
        return ""
    bars = "".join(
        f'<rect x="{12 * degree + 1}" y="{60 * (1 - weight / max(profile)):.2f}" width="10" height="{60 * weight / max(profile):.2f}" fill="#08306b">'
        f"<title>degree {degree}: {weight:.4g}</title></rect>"
        for degree, weight in enumerate(profile)
    )
    width = 12 * len(profile) + 2
    return f'<p>weight by degree, 0 to {len(profile) - 1}</p><svg viewBox="0 0 {width} 61" width="{width}" height="61">{bars}</svg>'
