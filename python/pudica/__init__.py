"""A laboratory for sensitivity: nudge functions and networks, and measure how they respond.

>>> import pudica as pu
>>> pu.boolean("majority", n=5).average_sensitivity
1.875

- :func:`boolean`: exact analysis of a Boolean function;
- :func:`measure`: how a model of yours responds to nudges of its inputs;
- :func:`sharpness`, :func:`hessian`: how a torch module's loss depends on its weights;
- :func:`run`: one of the experiments of ``pudica list``;
- :func:`open`: the folder of a sweep, a run or a measurement.
"""

from ._boolean import Boolean, boolean
from ._estimate import Estimate
from ._figure import Figure
from ._folders import Run, Sweep
from ._folders import open as open
from ._measure import Measurement, Result, measure
from ._nudges import (
    BitFlip,
    Corruption,
    EmbeddingNoise,
    FeatureNoise,
    FeatureResample,
    Fgsm,
    Nudge,
    PatchNoise,
    PatchReplace,
    Pgd,
    PixelNoise,
    TokenReplace,
    Typo,
    WeightNoise,
    WordDelete,
    WordMask,
    WordReplace,
    WordSwap,
)
from ._pudica import __version__ as __version__
from ._run import run
from ._weights import Hessian, hessian, sharpness

__all__ = [
    "BitFlip",
    "Boolean",
    "Corruption",
    "EmbeddingNoise",
    "Estimate",
    "FeatureNoise",
    "FeatureResample",
    "Fgsm",
    "Figure",
    "Hessian",
    "Measurement",
    "Nudge",
    "PatchNoise",
    "PatchReplace",
    "Pgd",
    "PixelNoise",
    "Result",
    "Run",
    "Sweep",
    "TokenReplace",
    "Typo",
    "WeightNoise",
    "WordDelete",
    "WordMask",
    "WordReplace",
    "WordSwap",
    "boolean",
    "hessian",
    "measure",
    "open",
    "run",
    "sharpness",
]
