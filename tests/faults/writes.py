"""Every write of a small sweep is made to fail, or to be the last before a kill or a power cut. See tests/faults/run."""
import collections, errno, hashlib, json, re, shutil, subprocess, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import shim
from sweeps import SMALL, SWEEPS, contents, differences, environment, strays

# The smallest sweep of each kind that writes all that it can; encoders have two runs. Checkpoints are written after each piece of work, on one
# thread, so that the order of writes is nearly always the same.
COMMANDS = {
    "encoders": "run few.toml target=parity n=5 seed=0..2 train.steps=12 track.every=4 --jobs 1",
    "dynamics": f"run hahn/dynamics n=5 model.d=16 seed=0 track.every=10 track.draws=3 train.steps=20 --jobs 1 {SMALL}",
    "follows": "run generalization.toml target=random:0 train.set_seed=0 seed=0 train.set_size=8 train.steps=6 --jobs 1",
    "scratchpad": f"run hahn/scratchpad n=4 model.d=16 seed=0 train.steps=4 --jobs 1 {SMALL}",
    "constructions": f"run hahn/constructions n=4 seed=0 train.steps=0 measure.sensitivity_samples=4 --jobs 1 {SMALL}",
    "images": "run vasudeva/mnist --data . model.kind=mlp model.hidden=8 data.train=30 data.test=0 train.epochs=2 train.batch=10 measure.every=1 "
              "measure.inputs=10 seed=0 --jobs 1",
    "texts": "run texts.toml --data . model.depth=1 train.epochs=2 measure.every=1 measure.nudge=replace measure.inputs=3 seed=0 model.kind=gpt2 --jobs 1",
    "grokking": "run vasudeva/grokking modulus=5 operation=a+b seed=0 model.d=8 model.heads=2 model.mlp=8 train.epochs=8 --jobs 1",
    "tokens": "run vasudeva/synthetic data=3:5:1:16:59 length=20 train.set_size=30 eval.sequences=20 train.batch=10 train.epochs=2 measure.every=1 "
              "seed=0 measure.simulated=100 --jobs 1",
    "spectra": "run vasudeva/spectra dim=5 depth=1 width=8 heads=4 seed=0 --jobs 1",
    "measure": SWEEPS["measure"][0],
    "merge": SWEEPS["merge"][0],
}
CALM = {"PUDICA_CHECKPOINT_SECONDS": 0, "RAYON_NUM_THREADS": 1}
ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES]
HANGS = 300


class Fault:
    """One fault that is tried, and what came of it."""

    def __init__(self, mode, where):
        self.mode, self.where, self.counts, self.problems = mode, where, collections.Counter(), []

    def count(self, *what):
        self.counts.update(what)

    def problem(self, text):
        self.counts["problems"] += 1
        self.problems.append(f"{self.mode}: {self.where}: {text}")


class Journal:
    """What was tried before, so that a pass can be made in several goes: a file with a line for each fault, or nothing."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.entries = [json.loads(line) for line in lines if line.endswith("}")] # a line may be cut

    def of_kind(self, name):
        """The faults of a kind that were tried: {(mode, where): (counts, problems)}."""
        return {(one["mode"], one["where"]): (one["counts"], one["problems"]) for one in self.entries if one["kind"] == name}

    def add(self, name, fault):
        if self.path:
            entry = {"kind": name, "mode": fault.mode, "where": fault.where, "counts": fault.counts, "problems": fault.problems}
            with self.lock, open(self.path, "a") as file:
                file.write(json.dumps(entry) + "\n")


class Writes:
    def __init__(self, place, library, name, journal, until):
        self.place, self.library, self.lock, self.name, self.journal, self.until = place, library, threading.Lock(), name, journal, until
        self.command = COMMANDS[name] if "{out}" in COMMANDS[name] else f"{COMMANDS[name]} --out out"
        self.counts = {mode: collections.Counter() for mode in ["refused", "killed", "killed twice", "power cut"]}
        self.problems, self.before = [], journal.of_kind(name)
        folder = place.folder("calm")
        self.log = self.logged(folder)
        self.expected = contents(folder / "out")
        self.operations = int(self.log[-1][0]) # some of which fail by themselves: a folder that is there already

    def start(self, folder, env, *more):
        return subprocess.run(self.place.words(self.command, *more), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=HANGS)

    def attempt(self, mode, where, act, *arguments):
        """Tries a fault, unless it was tried before or the time is up; counts what comes of it."""
        fault = Fault(mode, where)
        if before := self.before.get((mode, where)):
            fault.counts, fault.problems = before
        elif time.monotonic() < self.until:
            act(fault, *arguments)
            self.journal.add(self.name, fault)
        with self.lock:
            self.counts[mode].update(fault.counts)
            self.problems.extend(fault.problems)

    def same(self, fault, folder):
        """Whether a sweep that has ended is the undisturbed one."""
        changed, left = differences(self.expected, contents(folder / "out")), strays(folder / "out")
        if changed or left:
            fault.problem(f"other bytes in {changed[:6]}, left behind {left[:6]}")
        return not changed and not left

    def again(self, fault, folder, *more):
        """The same command without a fault must end well, with the same bytes."""
        ended = self.start(folder, environment(**CALM), *more)
        if ended.returncode:
            fault.problem(f"the same command again ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
        elif self.same(fault, folder):
            shutil.rmtree(folder)

    def refused(self, fault, at, error):
        """Operation `at` fails once."""
        folder = self.place.folder("refused")
        ended = self.start(folder, shim.watched(self.library, folder / "out", at=at, error=error, **CALM))
        fault.count("tried", "ended well" if ended.returncode == 0 else "a sentence")
        last = (ended.stderr.strip().splitlines() or [""])[-1]
        if "panicked" in ended.stderr or ended.returncode not in (0, 2) or (ended.returncode == 2 and not last.startswith("pudica: ")):
            fault.problem(f"ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
        self.again(fault, folder)

    def killed(self, fault, at):
        """The process is killed just before operation `at`."""
        folder = self.place.folder("killed")
        ended = self.start(folder, shim.watched(self.library, folder / "out", at=at, error="kill", **CALM))
        fault.count("tried", "ended well" if ended.returncode == 0 else "killed")
        self.again(fault, folder)

    def killed_twice(self, fault, first, second, links):
        """The process is killed just before operation `first`, and the one that continues just before `second`."""
        folder = self.place.folder("twice")
        for at in (first, second):
            ended = self.start(folder, shim.watched(self.library, folder / "out", at=at, error="kill", links=links, **CALM))
        fault.count("tried", "ended well" if ended.returncode == 0 else "killed")
        self.again(fault, folder)

    def pairs_of_kills(self):
        """Moments for two kills: the first leaves a claim behind, whole or (on a disk without links) empty, the second is at an operation on
        claims or the one after it."""
        for links in (None, "none"):
            log = self.logged("calm", links=links)
            made = [int(line[0]) for line in log if is_claim(line)]
            for first in {made[0] + 1, int(log[-1][0]) // 2} if made else ():
                folder = self.place.folder("once")
                self.start(folder, shim.watched(self.library, folder / "out", at=first, error="kill", links=links, **CALM))
                then = self.logged(folder, links=links)
                for second in sorted({int(line[0]) + after for line in then if is_claim(line) for after in (0, 1)}):
                    yield first, second, links

    def logged(self, folder, **asked):
        """What an undisturbed start writes, in a folder that is there or a new one."""
        folder = self.place.folder(folder) if isinstance(folder, str) else folder
        log = folder / "log"
        ended = self.start(folder, shim.watched(self.library, folder / "out", log, **asked, **CALM))
        if ended.returncode:
            raise SystemExit(f"the undisturbed sweep ended with exit code {ended.returncode}: {ended.stderr}")
        lines = [line.split(" ") for line in log.read_text().splitlines()]
        if unexpected := [line for line in lines if line[2] == "unexpected"]:
            raise SystemExit(f"it writes in a way that is not watched: {unexpected}")
        return lines

    def power_cut(self, fault, tree):
        """A disk that holds `tree` (names and contents; nothing: a folder) after a power cut."""
        folder = self.place.folder("cut")
        for name, content in sorted(tree.items()):
            path = folder / "out" / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        ended = self.start(folder, environment(**CALM))
        if ended.returncode == 0:
            fault.count("tried", "ended well")
            if self.same(fault, folder):
                shutil.rmtree(folder)
            return
        fault.count("tried", "a sentence")
        if "panicked" in ended.stderr or ended.returncode != 2:
            fault.problem(f"ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
        if not self.command.startswith("run "):
            shutil.rmtree(folder)
            return # another --out is what helps
        shutil.rmtree(folder / "out" / "damaged", ignore_errors=True)
        ended = self.start(folder, environment(**CALM), "--repair")
        if ended.returncode:
            fault.problem(f"--repair ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
            return
        fault.count("repaired")
        shutil.rmtree(folder / "out" / "damaged", ignore_errors=True)
        if self.same(fault, folder):
            shutil.rmtree(folder)

    def table(self):
        print(f"{self.name:<14}{'tried':>8}{'ended well':>12}{'killed':>8}{'a sentence':>12}{'repaired':>10}{'problems':>10}")
        for mode, counts in self.counts.items():
            print(f"{mode:<14}{counts['tried']:>8}{counts['ended well']:>12}{counts['killed']:>8}{counts['a sentence']:>12}"
                  f"{counts['repaired']:>10}{counts['problems']:>10}")


def is_claim(line):
    """Whether an operation makes, fills or removes the claim of a run."""
    return any(re.fullmatch(r"\.work/[0-9a-f]+\.[0-9]+", name) for name in line[3:5])


class Disk:
    """What a disk holds while a sweep writes: what is known to be there for good, and what a power cut may take."""

    def __init__(self):
        # A file is its content now and its content at its last sync; a folder is its names now and at its last sync.
        self.files = []  # [now, synced]
        self.folders = {".": [{}, {}]}  # name -> [now, synced]; the values of names are numbers of files, or None for folders

    def entries(self, name):
        path = PurePosixPath(name)
        return self.folders[str(path.parent)][0], path.name

    def file(self, name):
        entries, own = self.entries(name)
        return self.files[entries[own]]

    def apply(self, line):
        _, _, word, name, *rest = line
        if word == "open":
            entries, own = self.entries(name)
            if own not in entries:
                self.files.append([b"", None])
                entries[own] = len(self.files) - 1
            elif rest == ["empty"]:
                self.files[entries[own]][0] = b""
        elif word == "write":
            file, at, new = self.file(name), int(rest[0]), bytes.fromhex(rest[1])
            file[0] = file[0][:at].ljust(at, b"\0") + new + file[0][at + len(new):]
        elif word == "truncate":
            file = self.file(name)
            file[0] = file[0][: int(rest[0])].ljust(int(rest[0]), b"\0")
        elif word == "mkdir":
            if name != ".":
                entries, own = self.entries(name)
                entries[own] = None
            self.folders.setdefault(name, [{}, {}])
        elif word == "sync":
            if name in self.folders:
                self.folders[name][1] = dict(self.folders[name][0])
            else:
                file = self.file(name)
                file[1] = file[0]
        elif word == "unlink":
            entries, own = self.entries(name)
            del entries[own]
        elif word == "rename":
            entries, own = self.entries(name)
            to, new = self.entries(rest[0])
            to[new] = entries.pop(own)
        elif word == "link":
            entries, own = self.entries(name)
            to, new = self.entries(rest[0])
            to[new] = entries[own]
        else:
            raise SystemExit(f"the log has an operation that is not known: {word}")

    def cut(self, names, data):
        """What may be found after a power cut. `names`: `now` (all names reached the disk), `synced` (only those of synced folders),
        `made` (these, and all new folders). Of what was written to files since their sync, `data` is there: `now` (all), `synced` (nothing),
        `half`, or `zeros` (the length reached the disk, the bytes did not)."""
        tree = {}

        def content(number):
            now, synced = self.files[number][0], self.files[number][1] or b""
            if data == "synced" or not now.startswith(synced):
                return now if data == "now" else synced
            return {"now": now, "half": now[: (len(now) + len(synced)) // 2], "zeros": synced.ljust(len(now), b"\0")}[data]

        def walk(folder):
            now, synced = self.folders[folder]
            entries = now if names == "now" else dict(synced)
            if names == "made":
                entries |= {name: None for name, number in now.items() if number is None}
            for name, number in entries.items():
                path = name if folder == "." else f"{folder}/{name}"
                tree[path] = None if number is None else content(number)
                if number is None:
                    walk(path)

        walk(".")
        return tree


# How a disk may be found: all names or only the synced ones, all data or only the synced.
CUTS = [("now", "now"), ("now", "synced"), ("now", "half"), ("now", "zeros"), ("synced", "synced"), ("made", "synced"), ("made", "now"),
        ("made", "half")]


def power_cuts(log):
    """Every different disk that a power cut may leave after every operation: (where, tree)."""
    disk, seen = Disk(), set()
    for number, line in enumerate(log, 1):
        disk.apply(line)
        for names, data in CUTS:
            tree = disk.cut(names, data)
            key = hashlib.sha256(repr(sorted(tree.items())).encode()).digest()
            if key not in seen:
                seen.add(key)
                yield f"after operation {number} ({line[2]}), names {names}, data {data}", tree


def run(place, names, jobs, few, journal, seconds):
    """Whether all is well. `few`: so many of each mode, evenly spread, instead of all; `seconds`: after them no other fault is begun."""
    library = shim.build(place.scratch)
    if library is None:
        print("tests/faults/run --writes: skipped: needs rustc (or PUDICA_SHIM, the library made of tests/faults/shim.rs)")
        return True
    journal, until = Journal(journal), time.monotonic() + (seconds or float("inf"))
    return all([of_kind(Writes(place, library, name, journal, until), jobs, few) for name in names if time.monotonic() < until])


def of_kind(writes, jobs, few):
    begun = time.monotonic()
    every = range(1, writes.operations + 1)
    # All errors are alike to the code that writes: of other kinds than encoders, each operation fails with one of them.
    errors = {at: ERRORS if writes.name == "encoders" else [ERRORS[at % len(ERRORS)]] for at in every}
    refused = [("refused", f"operation {at} with {errno.errorcode[error]}", writes.refused, at, error) for at in every for error in errors[at]]
    killed = [("killed", f"operation {at}", writes.killed, at) for at in every]
    cut = [("power cut", where, writes.power_cut, tree) for where, tree in power_cuts(writes.log)]
    all_of_them, tasks = len(refused + killed + cut), [refused, killed, cut]
    if few:
        tasks = [some[:: max(1, len(some) // few)] for some in tasks]
    twice = [("killed twice", f"operations {first} and {second}, {links or 'with'} links", writes.killed_twice, first, second, links)
             for first, second, links in writes.pairs_of_kills()]
    all_of_them, tasks = all_of_them + len(twice), [*tasks, twice]
    with ThreadPoolExecutor(jobs) as pool:
        for task in [pool.submit(writes.attempt, *task) for some in tasks for task in some]:
            task.result()
    writes.table()
    tried = sum(counts["tried"] for counts in writes.counts.values())
    print(f"{writes.operations} operations; {tried} of {all_of_them} faults tried, the last ones in {time.monotonic() - begun:.0f} s\n", flush=True)
    for text in writes.problems[:20]:
        print(f"  {text}")
    return not writes.problems
