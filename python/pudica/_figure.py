"""A figure of a page: its drawing, and the numbers drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import _tables


class Figure:
    """A figure that pudica drew. A notebook shows it; `data` gives the numbers drawn in it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        """Its name, as ``fig1``."""
        self.path = folder / f"{name}.svg"
        """The drawing; a PNG and the numbers as CSV lie beside it."""
        if not self.path.is_file():
            known = sorted(path.stem for path in folder.glob("*.svg"))
            there = f"there are {', '.join(known)}" if known else "there is none yet"
            raise ValueError(f"{folder} has no figure {name!r}; {there}")

    @property
    def svg(self) -> str:
        """The drawing as text."""
        return self.path.read_text(encoding="utf-8")

    @property
    def png(self) -> bytes:
        """The drawing as a picture."""
        return self.path.with_suffix(".png").read_bytes()

    def data(self, kind: str | None = None) -> Any:
        """The numbers drawn, as a frame (see `Sweep.frame`)."""
        return _tables.frame(_tables.read_csv(self.path.with_suffix(".csv")), kind)

    def save(self, path: str | Path) -> None:
        """Writes the drawing to a ``.svg`` or ``.png`` file."""
        path = Path(path)
        source = self.path.with_suffix(path.suffix.lower())
        if path.suffix.lower() not in (".svg", ".png"):
            raise ValueError(f"{path}: figures are saved as .svg or .png")
        path.write_bytes(source.read_bytes())

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Figure({str(self.path)!r})"
