"""Numbers that know how far off they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import _pudica


class Estimate(float):
    """A number with its standard error and 95 % interval. It computes like any float.

    >>> from pudica import Estimate
    >>> e = Estimate(0.25, std_error=0.01, ci95=(0.23, 0.27), samples=100)
    >>> e
    0.250 ± 0.010
    >>> e * 2, e.ci95
    (0.5, (0.23, 0.27))
    """

    std_error: float | None
    """The standard error; 0 where the number is exact, None where it is not known."""
    ci95: tuple[float, float] | None
    """The 95 % interval."""
    samples: int
    """How many independent values it is the mean of; 0 where that is not known."""

    def __new__(
        cls,
        value: float,
        std_error: float | None = None,
        ci95: tuple[float, float] | None = None,
        samples: int = 0,
    ) -> Estimate:
        made = super().__new__(cls, value)
        made.std_error, made.ci95, made.samples = std_error, ci95, samples
        return made

    def __getnewargs__(self) -> tuple[float, float | None, tuple[float, float] | None, int]:  # type: ignore[override]
        return (float(self), self.std_error, self.ci95, self.samples)

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """The mean of independent values, with Student's interval.

        >>> Estimate.of([1.0, 2.0, 3.0]).ci95  # doctest: +ELLIPSIS
        (-0.48..., 4.48...)
        """
        count = len(values)
        if count == 0:
            raise ValueError("the mean of no values is not known")
        mean = math.fsum(values) / count
        if count == 1:
            return cls(mean, samples=1)
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
        return cls(mean, error, _pudica.interval(mean, error, count), count)

    def __repr__(self) -> str:
        value, error = float(self), self.std_error
        if not error or not math.isfinite(error) or not math.isfinite(value):
            return repr(value)
        if value != 0 and not 1e-3 <= abs(value) < 1e6:
            return f"{value:.3e} ± {error:.1e}"
        digits = min(max(1 - math.floor(math.log10(error)), 0), 12)
        return f"{value:.{digits}f} ± {error:.{digits}f}"
