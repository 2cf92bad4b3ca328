"""Tables: columns of CSV files as polars or pandas frames, or as numpy arrays."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

Columns = dict[str, list[Any]]


def read_csv(path: Path) -> Columns:
    """The columns of a table that pudica wrote; an empty cell is None."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        cells = list(rows)
    return {name: _typed([row[place] for row in cells]) for place, name in enumerate(head)}


def _typed(cells: list[str]) -> list[Any]:
    """Whole numbers, numbers or flags where all cells are such."""
    known = [cell for cell in cells if cell != ""]
    for kind in (int, float, _flag):
        try:
            for cell in known:
                kind(cell)
        except ValueError:
            continue
        return [None if cell == "" else kind(cell) for cell in cells]
    return [None if cell == "" else cell for cell in cells]


def _flag(cell: str) -> bool:
    if cell in ("true", "false"):
        return cell == "true"
    raise ValueError(cell)


def of_records(records: list[dict[str, Any]]) -> Columns:
    """Columns of lines that need not have the same keys."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return {name: [record.get(name) for record in records] for name in names}


def frame(columns: Columns, kind: str | None = None) -> Any:
    """A polars frame where polars is installed, else one of pandas, else a dictionary of numpy arrays.

    `kind` asks for one of "polars", "pandas" and "numpy".
    """
    if kind not in (None, "polars", "pandas", "numpy"):
        raise ValueError(f"kind={kind!r}: give 'polars', 'pandas' or 'numpy'")
    if kind in (None, "polars"):
        try:
            import polars  # pyright: ignore[reportMissingImports]

            return polars.DataFrame(columns, strict=False)
        except ImportError:
            if kind:
                raise
    if kind in (None, "pandas"):
        try:
            import pandas  # pyright: ignore[reportMissingImports]

            return pandas.DataFrame(columns)
        except ImportError:
            if kind:
                raise
    return {name: _array(cells) for name, cells in columns.items()}


def _array(cells: list[Any]) -> np.ndarray[Any, Any]:
    """Missing numbers are NaN; what is no number stays an object."""
    known = {type(cell) for cell in cells if cell is not None}
    if known <= {int, float}:
        if not known or None in cells or float in known:
            return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
        return np.array(cells, dtype=np.int64)
    if known == {bool} and None not in cells:
        return np.array(cells, dtype=np.bool_)
    return np.array(cells, dtype=object)
