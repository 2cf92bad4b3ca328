"""What is done to inputs: each nudge a small object with its parameters. ``pudica measure --list`` explains all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

Number = float | Sequence[float] | None
Whole = int | Sequence[int] | None
Word = str | Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class Nudge:
    """What is done to an input. A parameter that is left out has the command's default; a list of values makes a curve.

    >>> import pudica as pu
    >>> str(pu.PatchNoise(size=4, variance=[0.1, 1.0]))
    'patch-noise:size=4,variance=0.1,1'
    """

    nudge: ClassVar[str] = ""

    def __str__(self) -> str:
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        settings = ",".join(f"{name}={_written(value)}" for name, value in given if value is not None)
        return f"{self.nudge}:{settings}" if settings else self.nudge


def _written(value: Any) -> str:
    """As it would be typed: noise is named by this text, so that 1.0 and 1 must be the same."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if hasattr(value, "__iter__"):
        return ",".join(_written(one) for one in value)
    raise TypeError(f"{value!r} is neither a number nor a word")


@dataclass(frozen=True, kw_only=True)
class PatchNoise(Nudge):
    """Adds normal noise to one square patch of an image; `variance` is in units of the normalised image."""

    nudge = "patch-noise"
    size: Whole = None
    offset: Whole = None
    variance: Number = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class PatchReplace(Nudge):
    """Replaces one square patch of an image."""

    nudge = "patch-replace"
    size: Whole = None
    offset: Whole = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class PixelNoise(Nudge):
    """Adds normal noise to every pixel of an image, or to `pixels` of them, others each time."""

    nudge = "pixel-noise"
    variance: Number = None
    pixels: Whole = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class Corruption(Nudge):
    """One of the corruptions of CIFAR-10-C, at severity 1 to 5."""

    nudge = "corruption"
    name: Word = None
    severity: Whole = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class Fgsm(Nudge):
    """The fast gradient sign attack; needs gradients and labels."""

    nudge = "fgsm"
    epsilon: Number = None
    norm: Word = None


@dataclass(frozen=True, kw_only=True)
class Pgd(Nudge):
    """The attack by projected gradient steps; needs gradients and labels."""

    nudge = "pgd"
    epsilon: Number = None
    norm: Word = None
    steps: Whole = None


@dataclass(frozen=True, kw_only=True)
class WordReplace(Nudge):
    """Replaces one word of a text by a random other one."""

    nudge = "word-replace"
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class WordDelete(Nudge):
    """Leaves out one word of a text."""

    nudge = "word-delete"


@dataclass(frozen=True, kw_only=True)
class WordMask(Nudge):
    """Replaces one word of a text by a mask."""

    nudge = "word-mask"
    mask: Word = None


@dataclass(frozen=True, kw_only=True)
class WordSwap(Nudge):
    """Swaps one word of a text with the next."""

    nudge = "word-swap"


@dataclass(frozen=True, kw_only=True)
class Typo(Nudge):
    """Makes a typing mistake in one word of a text."""

    nudge = "typo"
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class EmbeddingNoise(Nudge):
    """Adds normal noise to the embedding of one token."""

    nudge = "embedding-noise"
    variance: Number = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class TokenReplace(Nudge):
    """Replaces one token by a random other one."""

    nudge = "token-replace"
    vocabulary: Whole = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class FeatureNoise(Nudge):
    """Adds normal noise to one column of a row; `scale` is in units of the column's spread."""

    nudge = "feature-noise"
    scale: Number = None
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class FeatureResample(Nudge):
    """Replaces one feature by that of a random other row."""

    nudge = "feature-resample"
    draws: Whole = None


@dataclass(frozen=True, kw_only=True)
class BitFlip(Nudge):
    """Flips one bit; exactly where all strings are asked about (``inputs="bits:16"``)."""

    nudge = "bit-flip"


@dataclass(frozen=True, kw_only=True)
class WeightNoise(Nudge):
    """Adds normal noise of deviation `rho` to all weights of a model that is a file; for torch modules there is ``pu.sharpness``."""

    nudge = "weight-noise"
    rho: Number = None
    draws: Whole = None
