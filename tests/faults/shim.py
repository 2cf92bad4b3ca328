"""Builds tests/faults/shim.rs, which stands between pudica and the file system."""
import os, shutil, subprocess
from pathlib import Path

from sweeps import HERE, environment


def build(scratch):
    """The library, or nothing where there is no Rust compiler and PUDICA_SHIM names none."""
    if os.environ.get("PUDICA_SHIM"):
        return Path(os.environ["PUDICA_SHIM"]).resolve()
    if not shutil.which("rustc"):
        return None
    library = Path(scratch) / "shim.so"
    subprocess.run(["rustc", "--edition", "2024", "--crate-type", "cdylib", "-O", "-o", str(library), str(HERE / "shim.rs")], check=True)
    return library


def watched(library, folder, log=None, at=None, error=None, machine=None, links=None, **more):
    """The environment of a process whose writes under `folder` are watched."""
    asked = {"LD_PRELOAD": library, "FAULTS_FOLDER": folder.resolve(), "FAULTS_LOG": log, "FAULTS_AT": at, "FAULTS_ERROR": error,
             "FAULTS_MACHINE": machine, "FAULTS_LINKS": links}
    return environment(**{key: value for key, value in asked.items() if value is not None}, **more)
