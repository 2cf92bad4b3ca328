"""`pudica run` from Python: a process of its own, whose events are shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

from ._folders import Sweep
from ._progress import Progress


def run(
    recipe: str,
    *,
    scale: str | None = None,
    out: str | os.PathLike[str] | None = None,
    device: str | None = None,
    data: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    settings: dict[str, Any] | None = None,
    progress: bool | None = None,
    **overrides: Any,
) -> Sweep:
    """Runs an experiment, or what is left of it, and opens its folder. ``pudica list`` tells which there are.

    ::

        s = pu.run("hahn/length-scaling", n=[4, 6, 8], seed=range(3))
        s.frame()

    Parameters
    ----------
    recipe
        Its name, or the path of your own TOML file.
    scale, out, device, data, jobs
        As ``--scale``, ``--out``, ... of the command.
    overrides, settings
        Settings to change; a list or a range is swept. Those with a dot in their name are given in `settings`, as ``{"model.d": 64}``, or with
        two underscores: ``model__d=64``.

    Ctrl-C saves and ends (KeyboardInterrupt); the same call continues.
    """
    changed = {key.replace("__", "."): value for key, value in overrides.items()} | (settings or {})
    command = [sys.executable, "-m", "pudica", "run", str(recipe)]
    command += [f"{key}={_written(value)}" for key, value in changed.items()]
    flags = {"--scale": scale, "--out": out, "--device": device, "--data": data, "--jobs": jobs}
    for flag, value in flags.items():
        command += [flag, str(value)] if value is not None else []
    bar = Progress(progress)
    # Of its own session: Ctrl-C in a terminal must reach it once, from here, because a second one does not wait.
    process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    said: deque[str] = deque(maxlen=20)
    listener = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    listener.start()
    folder: str | None = None
    try:
        for line in process.stdout or ():
            event = json.loads(line)
            folder = event.get("folder", folder)
            _show(bar, event)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    finally:
        bar.close()
        if process.poll() is None and sys.exc_info()[0] is not None:
            process.kill()
        code = process.wait()
        listener.join(timeout=5)
    if code in (130, 143):
        raise KeyboardInterrupt
    if code != 0 or folder is None:
        problem = "".join(said).strip().removeprefix("pudica: ").removeprefix("error: ")
        raise ValueError(problem or f"`pudica run` ended with code {code}")
    return Sweep(Path(folder))


def _written(value: Any) -> str:
    """As the command reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if hasattr(value, "__iter__"):
        values = [_written(one) for one in value]
        if not values:
            raise ValueError("a setting has no value: give at least one")
        return ",".join(values)
    return str(value)


def _show(bar: Progress, event: dict[str, Any]) -> None:
    if event.get("event") in ("progress", "run_ended") and event.get("done") is not None:
        bar(str(event.get("label", "")), float(event["done"]), event.get("seconds_left"))
