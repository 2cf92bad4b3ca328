"""Two processes at one sweep, and a task that another one takes for dead and that wakes up: no run is written by both. See tests/faults/run."""
import collections, random, signal, subprocess, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import shim
from kills import wait_until
from sweeps import SWEEPS, contents, differences, strays

HANGS = 300
# Seconds without a sign of life after which a process is taken for dead.
STALE = 1.0
# How the second process knows the first one to be gone: it is a later start of the same Slurm job; or it has heard nothing for long from a
# machine that it cannot see.
REQUEUED = [{"SLURM_JOB_ID": 7, "SLURM_RESTART_COUNT": restarts} for restarts in (0, 1)]
ELSEWHERE = [{"machine": f"machine {name}"} for name in "ab"]


class Two:
    def __init__(self, place, library, names, seed, mounts):
        self.place, self.library, self.names, self.seed, self.mounts = place, library, names, seed, mounts
        self.lock = threading.Lock()
        self.counts = {name: collections.Counter() for name in names}
        self.problems = []

    def start(self, name, folder, number, unit, **more):
        words = self.place.command(name, *(["--unit", "1/1"] if unit else []))
        seen = self.mounts[number - 1] / folder.relative_to(self.place.scratch) if self.mounts else folder
        env = shim.watched(self.library, seen / "out", folder / f"log{number}", PUDICA_CHECKPOINT_SECONDS=0.02, PUDICA_STALE_SECONDS=STALE, **more)
        with open(folder / f"stderr{number}", "wb") as stderr:
            return subprocess.Popen(words, cwd=seen, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)

    def end(self, folder, number, child):
        """The exit code, and what was said."""
        try:
            code = child.wait(HANGS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            code = "hangs"
        return code, (folder / f"stderr{number}").read_text(errors="replace").strip()

    def at_once(self, name, expected, seconds, number):
        """Two processes begin at the same time. Whole sweeps are locked: one of the two may say so and end."""
        folder = self.place.folder(name)
        unit = SWEEPS[name][0].startswith("run ") and number % 3 < 2
        both = [self.start(name, folder, which, unit) for which in (1, 2)]
        ended = [self.end(folder, which, child) for which, child in zip((1, 2), both)]
        refused = [said for code, said in ended if code == 2 and "another pudica is running in this folder" in said]
        bad = [said for code, said in ended if code != 0 and said not in refused]
        if bad or len(refused) > (0 if unit else 1):
            return self.problem(name, f"two at once: {ended}")
        self.count(name, "at once", *(["refused"] * len(refused)))
        self.check(name, "two at once", folder, expected)

    def zombie(self, name, expected, seconds, number):
        """One process is stopped at a random moment, another takes its runs over and ends, and the first goes on."""
        how, (one, other) = [("requeued", REQUEUED), ("silent", ELSEWHERE)][number % 2]
        chance = random.Random(f"{self.seed}/{name}/{number}/zombie")
        folder = self.place.folder(name)
        first = self.start(name, folder, 1, True, **one)
        wait_until(first, folder / "out", "file", int(chance.random() * 0.6 * len(expected)))
        first.send_signal(signal.SIGSTOP)
        self.wakes_up(name, expected, folder, how, first, other)

    def exact_zombie(self, name, expected, operations, number):
        """The same, stopped just before or just after one of its operations, the worst moments: what it had looked at before is true no more."""
        how, fault = [("before", "stop"), ("after", "stop-after")][number % 2]
        at = random.Random(f"{self.seed}/{name}/{number}/exact").choice(operations)
        folder = self.place.folder(name)
        first = self.start(name, folder, 1, True, at=at, error=fault, **REQUEUED[0])
        while first.poll() is None and not is_stopped(first.pid):
            time.sleep(0.01)
        self.wakes_up(name, expected, folder, how, first, REQUEUED[1])

    def operations(self, name):
        """The numbers of the operations by which an undisturbed process changes runs."""
        folder = self.place.folder(name)
        self.end(folder, 1, self.start(name, folder, 1, True, **REQUEUED[0]))
        return [int(number) for number, _, run in changes(folder / "log1")]

    def wakes_up(self, name, expected, folder, how, first, other):
        """Another process makes what a stopped one had begun; then that one goes on."""
        was_there = first.poll() is None
        second = self.start(name, folder, 2, True, **other)
        code, said = self.end(folder, 2, second)
        first.send_signal(signal.SIGCONT)
        first_code, first_said = self.end(folder, 1, first)
        if code != 0 or first_code != 0 or "panicked" in said + first_said:
            return self.problem(name, f"{how}: second ended with {code}: {said[-300:]}; first with {first_code}: {first_said[-300:]}")
        self.count(name, how if was_there else "too late", *(["taken over"] if "was taken over" in first_said else []))
        self.check(name, how, folder, expected)

    def check(self, name, how, folder, expected):
        """The same bytes, nothing left behind, and of each run all that one process wrote is earlier than all that the other did."""
        changed, left = differences(expected, contents(folder / "out")), strays(folder / "out")
        if changed or left:
            return self.problem(name, f"{how}: other bytes in {changed[:6]}, left behind {left[:6]} ({folder})")
        spans = [spans_of(folder / f"log{number}") for number in (1, 2)]
        mixed = [run for run in spans[0].keys() & spans[1].keys() if spans[0][run][0] < spans[1][run][1] and spans[1][run][0] < spans[0][run][1]]
        if mixed:
            return self.problem(name, f"{how}: both wrote in {mixed[:4]} ({folder})")
        self.count(name, "runs", *["runs"] * (len(spans[0].keys() | spans[1].keys()) - 1), *["by both in turn"] * len(spans[0].keys() & spans[1].keys()))

    def count(self, name, *what):
        with self.lock:
            self.counts[name].update(what)

    def problem(self, name, text):
        with self.lock:
            self.counts[name]["problems"] += 1
            self.problems.append(f"{name}, {text}")

    def table(self):
        columns = ["at once", "refused", "requeued", "silent", "before", "after", "too late", "taken over", "runs", "by both in turn", "problems"]
        print(f"{'kind':<15}" + "".join(f"{column:>{len(column) + 3}}" for column in columns))
        for name, counts in self.counts.items():
            print(f"{name:<15}" + "".join(f"{counts[column]:>{len(column) + 3}}" for column in columns))


def is_stopped(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


def changes(log):
    """By what a process changed files of runs: (number, time, run). Scratch files are a process's own until they are renamed, and what is
    written to a file that another one has replaced is nowhere."""
    for line in log.read_text().splitlines() if log.exists() else []:
        number, at, word, *names = line.split(" ")
        for name in names[1:2] if word in ("rename", "link") else names[:1] if word in ("write", "unlink", "truncate") else []:
            if name.startswith("runs/") and not name.endswith((".scratch", "%20(deleted)")):
                yield number, float(at), name.split("/")[1]


def spans_of(log):
    """When a process changed each run: {run: (first, last)}."""
    spans = {}
    for _, at, run in changes(log):
        first, _ = spans.get(run, (at, at))
        spans[run] = (first, at)
    return spans


def run(place, names, rounds, seed, jobs, mounts):
    """Whether all is well. `mounts`: how the first and the second process see the folder that `place` has."""
    library = shim.build(place.scratch)
    if library is None:
        print("tests/faults/run --two: skipped: needs rustc (or PUDICA_SHIM, the library made of tests/faults/shim.rs)")
        return True
    begun = time.monotonic()
    two = Two(place, library, names, seed, mounts)

    with ThreadPoolExecutor(jobs) as pool:
        references = dict(zip(names, pool.map(place.reference, names)))
        parted = [name for name in names if SWEEPS[name][0].startswith("run ")]
        operations = dict(zip(parted, pool.map(two.operations, parted)))
        tasks = []
        for number in range(rounds):
            for name in names:
                tasks.append(pool.submit(two.at_once, name, *references[name], number))
                if name in operations:
                    tasks.append(pool.submit(two.zombie, name, *references[name], number))
                    tasks.append(pool.submit(two.exact_zombie, name, references[name][0], operations[name], number))
        for task in tasks:
            task.result()
    two.table()
    print(f"{rounds} rounds per kind in {time.monotonic() - begun:.0f} s, seed {seed}")
    for text in two.problems[:20]:
        print(f"  {text}")
    return not two.problems
