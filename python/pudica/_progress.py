"""How far a long computation is, in a notebook and in a terminal."""

from __future__ import annotations

import html
import importlib
import sys
import time
from typing import Any


class Progress:
    """One line that is written over; nothing where nobody looks, and nothing for what takes less than a second."""

    def __init__(self, show: bool | None = None) -> None:
        self.began = time.monotonic()
        self.handle: Any = None
        self.notebook = show is not False and _in_notebook()
        self.terminal = show is not False and not self.notebook and (bool(show) or sys.stderr.isatty())
        self.width = 0

    def __call__(self, what: str, done: float, seconds_left: float | None) -> None:
        if time.monotonic() - self.began < 1:
            return
        left = "" if seconds_left is None else f", {_duration(seconds_left)} left"
        self.show(done, f"{100 * done:3.0f} %  {what}{left}")

    def show(self, done: float, line: str) -> None:
        if self.notebook:
            bar = f'<progress value="{done:.4f}" max="1" style="width: 16em"></progress> <code>{html.escape(line)}</code>'
            display = _display()
            if self.handle is None:
                self.handle = display.display(display.HTML(bar), display_id=True)
            else:
                self.handle.update(display.HTML(bar))
        elif self.terminal:
            cut = line[:100]
            print(f"\r{cut:<{self.width}}", end="", file=sys.stderr, flush=True)
            self.width = max(self.width, len(cut))

    def close(self) -> None:
        """Takes the line away."""
        if self.handle is not None:
            self.handle.update(_display().HTML(""))
        elif self.terminal and self.width:
            print(f"\r{'':<{self.width}}\r", end="", file=sys.stderr, flush=True)


def _display() -> Any:
    return importlib.import_module("IPython.display")


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
