"""The compiled half of the package."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike

import numpy as np
from numpy.typing import NDArray

PROGRAM: str
__version__: str

class Function:
    @staticmethod
    def given(text: str, n: int | None) -> Function: ...
    @staticmethod
    def table(dtype: str, bytes: NDArray[np.uint8], name: str) -> Function: ...
    @property
    def name(self) -> str: ...
    @property
    def n(self) -> int: ...
    def analyse(
        self,
        measures: Sequence[str] | None,
        convention: str,
        rho: Sequence[float],
        top: int,
        p: float | None,
        method: str | None,
        precision: float | None,
        time_limit: float,
        seed: int,
        fix: str | None,
    ) -> str: ...
    def fourier(self, convention: str) -> NDArray[np.float64]: ...
    def bits(self) -> NDArray[np.bool_] | None: ...
    def reals(self) -> NDArray[np.float64] | None: ...

def main(arguments: Sequence[str]) -> int: ...
def interval(mean: float, std_error: float, samples: int) -> tuple[float, float]: ...
def measure(
    models: Sequence[object],
    inputs: str | tuple[str, str, Sequence[int], NDArray[np.uint8]] | tuple[str, Sequence[tuple[str, str | None]]],
    options: Mapping[str, object],
    folder: str | PathLike[str],
    progress: Callable[[str, float, float | None], None] | None,
) -> None: ...
def write_page(folder: str | PathLike[str]) -> str: ...
