"""Tiny sweeps of every kind, the data they need, and what of their folders must not depend on interruptions."""
import csv, importlib.machinery, importlib.util, io, os, re, shlex, subprocess, sys, threading, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SMALL = "train.batch=32 eval.batches=1 measure.batches=2 measure.draws=2"

# Name, command, what is run once before it, whether it promises the same bits on a GPU (encoders that train alone). Half a second each.
SWEEPS = {
    "encoders": ("run few.toml n=5 train.steps=300", [], True),
    "dynamics": (f"run hahn/dynamics n=5 model.d=16 seed=0..2 track.every=20 track.draws=3 train.steps=200 {SMALL}", [], True),
    "follows": ("run generalization.toml train.set_seed=0", [], True),
    "scratchpad": (f"run hahn/scratchpad n=4 model.d=16 seed=0..2 train.steps=40 {SMALL}", [], False),
    "constructions": (f"run hahn/constructions n=4,9 seed=0..2 train.steps=0 measure.sensitivity_samples=4 {SMALL}", [], True),
    "images": ("run vasudeva/mnist --data . model.kind=mlp model.hidden=8 data.train=30 data.test=0 train.epochs=4 train.batch=10 "
               "measure.every=1 measure.inputs=10", [], False),
    "texts": ("run texts.toml --data . model.depth=1 train.epochs=4 measure.every=2 measure.nudge=replace measure.inputs=3 seed=0", [], False),
    "grokking": ("run vasudeva/grokking modulus=5 operation=a+b seed=0..2 model.d=8 model.heads=2 model.mlp=8 train.epochs=150", [], False),
    "tokens": ("run vasudeva/synthetic data=3:5:1:16:59 length=20 train.set_size=30 eval.sequences=20 train.batch=10 train.epochs=8 "
               "measure.every=2 seed=0..2 measure.simulated=100", [], False),
    "spectra": ("run vasudeva/spectra dim=5 depth=1 width=8 heads=4 seed=0..2", [], False),
    "measure": ("measure net.safetensors --inputs bits:12 --nudge bit-flip --nudge weight-noise:rho=0.01,0.1",
                ["construct majority --n 12 --save net.safetensors"], False),
    "merge": ("merge one two --into {out}",
              [f"run few.toml n=5 --unit {part}/2 --out {out}" for part, out in [(1, "one"), (2, "two")]], False),
}
# Those that have no training and so no checkpoints.
AT_ONCE = {"constructions", "spectra", "measure", "merge"}


class Place:
    """A folder with the recipes and data of the sweeps; each round has its own working folder that links to them."""

    def __init__(self, pudica, scratch, names):
        self.pudica, self.scratch, self.data, self.count, self.lock = Path(pudica).resolve(), Path(scratch), Path(scratch) / "data", 0, threading.Lock()
        sys.dont_write_bytecode = True
        loader = importlib.machinery.SourceFileLoader("same_numbers", str(HERE.parent / "same-numbers"))
        same_numbers = importlib.util.module_from_spec(importlib.util.spec_from_loader("same_numbers", loader))
        loader.exec_module(same_numbers)
        same_numbers.make_data(self.data)
        for name in names:
            for command in SWEEPS[name][1]:
                self.must(command, self.data)

    def words(self, command, *more):
        return [str(self.pudica), *shlex.split(command.replace("{out}", "out")), *more]

    def command(self, name, *more):
        """The words of a sweep's command, which writes into `out`."""
        command = SWEEPS[name][0]
        return self.words(command, *([] if "{out}" in command else ["--out", "out"]), *more)

    def must(self, command, folder):
        """Runs a command that must succeed."""
        words = command if isinstance(command, list) else self.words(command)
        ended = subprocess.run(words, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if ended.returncode:
            raise SystemExit(f"{shlex.join(words)}\nended with exit code {ended.returncode}: {ended.stderr.strip()}")
        return ended

    def reference(self, name, *more):
        """An undisturbed sweep: what it leaves, and how long it takes."""
        folder, begun = self.folder(name), time.monotonic()
        self.must(self.command(name, *more), folder)
        return contents(folder / "out"), time.monotonic() - begun

    def folder(self, name):
        """A new working folder."""
        with self.lock:
            self.count += 1
            folder = self.scratch / f"{name}-{self.count}"
        folder.mkdir()
        for entry in self.data.iterdir():
            (folder / entry.name).symlink_to(entry)
        return folder


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PUDICA_", "SLURM_"))}
    return kept | {"RAYON_NUM_THREADS": "2"} | {key: str(value) for key, value in more.items()}


# Times, which an interruption changes, and digests of what has them inside. A line of metrics has its time only where it was the last to be
# logged at once.
TIMES = re.compile(rb',?\s*"((seconds|seconds_of_computing)": ?[0-9.e+-]+|(metrics|summary)_digest": "[0-9a-f]{16}")')
MINUTES = re.compile(rb"<b>[0-9.]+</b>(?= minutes of computing)")
# Left out: locks and signs of life; tables of which the same values stand in the .csv beside them, with times inside.
LEFT_OUT = re.compile(r"^(\.lock|\.work(/.*)?|.*\.parquet)$")


def without_times(path, content):
    if path.suffix in (".json", ".jsonl"):
        return TIMES.sub(b"", content)
    if path.suffix == ".html":
        return MINUTES.sub(b"", content)
    if path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(content.decode())))
        kept = [at for at, name in enumerate(rows[0]) if name != "seconds"] if rows else []
        return [[row[at] for at in kept if at < len(row)] for row in rows]
    return content


def contents(out):
    """Every file of a folder by its name, without times."""
    files = [path for path in sorted(out.rglob("*")) if path.is_file()]
    named = {str(path.relative_to(out)): path for path in files}
    return {name: without_times(path, path.read_bytes()) for name, path in named.items() if not LEFT_OUT.match(name) and not is_stray(name, out)}


def is_stray(name, out):
    """Whether a file of a finished sweep should not be there any more."""
    path = Path(name)
    return name.endswith(".scratch") or path.parts[0] == ".work" or (path.name == "checkpoint.safetensors" and (out / path.parent / "summary.json").exists())


def strays(out):
    names = [str(path.relative_to(out)) for path in sorted(out.rglob("*")) if path.is_file()]
    return [name for name in names if is_stray(name, out)]


def differences(expected, found):
    """The names of files that are not the same."""
    return [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)]
