"""Sweeps: run from here, opened as data."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pudica as pu

TINY = {"target": "parity", "train.steps": 40, "measure.draws": 2}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "out"
    return pu.run("hahn/length-scaling", n=[4, 5], seed=range(2), settings=TINY, out=out)


def test_a_sweep_is_a_frame(sweep):
    frame = sweep.frame("numpy")
    assert frame["n"].tolist() == [4, 4, 5, 5] and frame["seed"].dtype == np.int64
    assert frame["sharpness"].dtype == np.float64 and frame["converged"].dtype == bool
    assert len(sweep) == 4 and repr(sweep).startswith("Sweep(hahn/length-scaling, 4 of 4 runs")
    assert "Sharpness" in sweep._repr_html_() and sweep.page.is_file()
    for name in ["polars", "pandas"]:
        try:
            __import__(name)
        except ImportError:
            with pytest.raises(ImportError):
                sweep.frame(name)
        else:
            assert sweep.frame(name)["n"].to_list() == [4, 4, 5, 5]
    with pytest.raises(ValueError, match="kind='csv'"):
        sweep.frame("csv")


def test_a_run_has_metrics_and_weights(sweep):
    run = sweep.runs[0]
    metrics = run.metrics("numpy")
    assert metrics["step"][-1] == 40 and np.isfinite(metrics["train_loss"]).all()
    assert run.settings["n"] == 4 and run.settings["train"]["steps"] == 40
    assert run.measures["sharpness"] == sweep.frame("numpy")["sharpness"][0]
    assert sweep[run.label].id == sweep[run.id].id == run.id and sweep[0].id == run.id
    weights = run.state_dict()
    assert len(weights) > 5 and all(np.isfinite(np.asarray(value)).all() for value in weights.values())
    total = np.sqrt(sum(float((np.asarray(value, np.float64) ** 2).sum()) for name, value in weights.items() if "pos" not in name))
    assert total == pytest.approx(run.measures["param_norm"], rel=1e-5)
    assert pu.open(run.path).measures == run.measures
    with pytest.raises(KeyError):
        sweep["no such run"]


def test_weights_as_the_safetensors_package_reads_them(sweep):
    safetensors = pytest.importorskip("safetensors.numpy")
    expected = safetensors.load_file(sweep.runs[1].path / "weights.safetensors")
    found = sweep.runs[1].state_dict()
    assert expected.keys() == found.keys()
    assert all((np.asarray(found[name]) == value).all() for name, value in expected.items())


def test_figures(sweep):
    assert "fig1" in sweep.figures
    figure = sweep.figure("fig1")
    assert figure.svg.startswith("<svg") and figure.png.startswith(b"\x89PNG") and "x" in figure.data("numpy")
    figure.save(sweep.path / "copy.svg")
    assert (sweep.path / "copy.svg").read_text() == figure.svg
    with pytest.raises(ValueError, match="there are fig1"):
        sweep.figure("fig99")
    with pytest.raises(ValueError, match=".svg or .png"):
        figure.save("copy.jpg")


def test_the_same_call_only_reads(sweep):
    before = {run.id: (run.path / "summary.json").stat().st_mtime_ns for run in sweep.runs}
    again = pu.run("hahn/length-scaling", n=[4, 5], seed=range(2), settings=TINY, out=sweep.path)
    assert {run.id: (run.path / "summary.json").stat().st_mtime_ns for run in again.runs} == before


def test_mistakes_are_the_commands(tmp_path, sweep):
    with pytest.raises(ValueError, match="did you mean"):
        pu.run("hahn/length-scalin")
    with pytest.raises(ValueError, match="train.stepz"):
        pu.run("hahn/length-scaling", out=tmp_path / "a", train__stepz=3)
    with pytest.raises(ValueError, match="no value"):
        pu.run("hahn/length-scaling", n=[], out=tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        pu.open(tmp_path / "nothing")
    with pytest.raises(ValueError, match="neither a sweep"):
        pu.open(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/sweep.json").write_text("{")
    with pytest.raises(ValueError, match="not readable"):
        pu.open(tmp_path / "broken")
    (sweep.runs[2].path / "weights.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="no safetensors file"):
        sweep.runs[2].state_dict()


def test_ctrl_c_saves_and_the_same_call_continues(tmp_path):
    def go():
        return pu.run("hahn/length-scaling", n=6, seed=0, settings={"target": "parity", "train.steps": 20000}, out=tmp_path / "out")

    def interrupt():
        deadline = time.monotonic() + 60
        # The second line is written after the first steps, before which there is nothing to save.
        while time.monotonic() < deadline and not any(path.read_text().count("\n") > 1 for path in tmp_path.glob("out/runs/*/metrics.jsonl")):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        go()
    thread.join()
    (run,) = pu.open(tmp_path / "out").runs
    assert run.summary is None and "not finished" in repr(run) and run.measures == {}
    assert list(run.path.glob("*checkpoint*")), "what was done is saved"


def test_the_wheel_has_the_command(tmp_path):
    from pathlib import Path

    command = Path(sys.executable).with_name("pudica")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("pudica ") and pu.__version__ in version
    listed = json.loads(subprocess.run([command, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    assert "hahn/length-scaling" in [recipe["name"] for recipe in listed]
    wrong = subprocess.run([command, "boolean", "majorty", "--n", "3"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "did you mean 'majority'" in wrong.stderr
    # Through a pipe whose reader leaves, as the program does.
    shell = f"'{command}' settings | head -1; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", shell], capture_output=True).returncode in (0, 141)
