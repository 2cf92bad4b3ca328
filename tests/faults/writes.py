"""Every write of a small sweep is made to fail, or to be the last before a kill or a power cut. See tests/faults/run."""
import collections, errno, hashlib, shutil, subprocess, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import shim
from sweeps import contents, differences, environment, strays

# Two runs of 12 steps, checkpoints after each piece of work, one thread, so that the order of writes is nearly always the same.
COMMAND = "run few.toml target=parity n=5 seed=0..2 train.steps=12 track.every=4 --jobs 1 --out out"
CALM = {"PUDICA_CHECKPOINT_SECONDS": 0, "RAYON_NUM_THREADS": 1}
ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES]
HANGS = 300


class Writes:
    def __init__(self, place, library):
        self.place, self.library, self.lock = place, library, threading.Lock()
        self.counts = {mode: collections.Counter() for mode in ["refused", "killed", "power cut"]}
        self.problems = []
        folder = place.folder("calm")
        log = folder / "log"
        ended = self.start(folder, shim.watched(library, folder / "out", log, **CALM))
        if ended.returncode:
            raise SystemExit(f"the undisturbed sweep ended with exit code {ended.returncode}: {ended.stderr}")
        self.expected = contents(folder / "out")
        self.log = [line.split(" ") for line in log.read_text().splitlines()]
        if unexpected := [line for line in self.log if line[2] == "unexpected"]:
            raise SystemExit(f"it writes in a way that is not watched: {unexpected}")
        self.operations = len(self.log)

    def start(self, folder, env, *more):
        return subprocess.run(self.place.words(COMMAND, *more), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=HANGS)

    def problem(self, mode, text):
        with self.lock:
            self.counts[mode]["problems"] += 1
            self.problems.append(f"{mode}: {text}")

    def count(self, mode, *what):
        with self.lock:
            self.counts[mode].update(what)

    def same(self, mode, where, folder):
        """Whether a sweep that has ended is the undisturbed one."""
        changed, left = differences(self.expected, contents(folder / "out")), strays(folder / "out")
        if changed or left:
            self.problem(mode, f"{where}: other bytes in {changed[:6]}, left behind {left[:6]}")
        return not changed and not left

    def again(self, mode, where, folder, *more):
        """The same command without a fault must end well, with the same bytes."""
        ended = self.start(folder, environment(**CALM), *more)
        if ended.returncode:
            self.problem(mode, f"{where}: the same command again ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
        elif self.same(mode, where, folder):
            shutil.rmtree(folder)

    def refused(self, at, error):
        """Operation `at` fails once."""
        mode, where = "refused", f"operation {at} with {errno.errorcode[error]}"
        folder = self.place.folder("refused")
        ended = self.start(folder, shim.watched(self.library, folder / "out", at=at, error=error, **CALM))
        self.count(mode, "tried", "ended well" if ended.returncode == 0 else "a sentence")
        last = (ended.stderr.strip().splitlines() or [""])[-1]
        if "panicked" in ended.stderr or ended.returncode not in (0, 2) or (ended.returncode == 2 and not last.startswith("pudica: ")):
            self.problem(mode, f"{where}: ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
        self.again(mode, where, folder)

    def killed(self, at):
        """The process is killed just before operation `at`."""
        folder = self.place.folder("killed")
        ended = self.start(folder, shim.watched(self.library, folder / "out", at=at, error="kill", **CALM))
        self.count("killed", "tried", "ended well" if ended.returncode == 0 else "killed")
        self.again("killed", f"operation {at}", folder)

    def power_cut(self, where, tree):
        """A disk that holds `tree` (names and contents; nothing: a folder) after a power cut."""
        mode, folder = "power cut", self.place.folder("cut")
        for name, content in sorted(tree.items()):
            path = folder / "out" / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        ended = self.start(folder, environment(**CALM))
        if ended.returncode == 0:
            self.count(mode, "tried", "ended well")
            if self.same(mode, where, folder):
                shutil.rmtree(folder)
            return
        self.count(mode, "tried", "a sentence")
        if "panicked" in ended.stderr or ended.returncode != 2:
            self.problem(mode, f"{where}: ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
        shutil.rmtree(folder / "out" / "damaged", ignore_errors=True)
        ended = self.start(folder, environment(**CALM), "--repair")
        if ended.returncode:
            self.problem(mode, f"{where}: --repair ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
            return
        self.count(mode, "repaired")
        shutil.rmtree(folder / "out" / "damaged", ignore_errors=True)
        if self.same(mode, where, folder):
            shutil.rmtree(folder)

    def table(self):
        print(f"{'fault':<12}{'tried':>8}{'ended well':>12}{'killed':>8}{'a sentence':>12}{'repaired':>10}{'problems':>10}")
        for mode, counts in self.counts.items():
            print(f"{mode:<12}{counts['tried']:>8}{counts['ended well']:>12}{counts['killed']:>8}{counts['a sentence']:>12}"
                  f"{counts['repaired']:>10}{counts['problems']:>10}")


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
                yield f"after operation {number} ({' '.join(line[2:4])}), names {names}, data {data}", tree


def run(place, jobs, few):
    """Whether all is well. `few`: so many of each mode, evenly spread, instead of all."""
    library = shim.build(place.scratch)
    if library is None:
        print("tests/faults/run --writes: skipped: needs rustc (or PUDICA_SHIM, the library made of tests/faults/shim.rs)")
        return True
    begun = time.monotonic()
    writes = Writes(place, library)
    every = range(1, writes.operations + 1)
    tasks = [[(writes.refused, at, error) for at in every for error in ERRORS], [(writes.killed, at) for at in every],
             [(writes.power_cut, where, tree) for where, tree in power_cuts(writes.log)]]
    all_of_them = sum(map(len, tasks))
    if few:
        tasks = [some[:: max(1, len(some) // few)] for some in tasks]
    with ThreadPoolExecutor(jobs) as pool:
        for task in [pool.submit(*task) for some in tasks for task in some]:
            task.result()
    writes.table()
    tried = sum(counts["tried"] for counts in writes.counts.values())
    print(f"{writes.operations} operations; {tried} of {all_of_them} faults tried in {time.monotonic() - begun:.0f} s")
    for text in writes.problems[:20]:
        print(f"  {text}")
    return not writes.problems
