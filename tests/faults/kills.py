"""Ends sweeps of every kind with signals at random moments until they finish, and compares with undisturbed ones. See tests/faults/run."""
import collections, os, random, shutil, signal, subprocess, threading, time
from concurrent.futures import ThreadPoolExecutor

from sweeps import AT_ONCE, contents, differences, environment, strays

# What is sent, and how often. A second number is the time in seconds after which the next signal of the row follows, at most.
KINDS_OF_ENDS = [
    ("KILL", [signal.SIGKILL], 10),
    ("TERM", [signal.SIGTERM], 2),
    ("INT", [signal.SIGINT], 2),
    ("HUP", [signal.SIGHUP], 1),
    ("INT INT", [signal.SIGINT, 0.05, signal.SIGINT], 1),
    ("INT KILL", [signal.SIGINT, 0.1, signal.SIGKILL], 2),
    ("TERM KILL", [signal.SIGTERM, 0.1, signal.SIGKILL], 1),
    ("STOP CONT", [signal.SIGSTOP, 0.05, signal.SIGCONT], 1),
    ("STOP KILL", [signal.SIGSTOP, 0.05, signal.SIGKILL], 1),
]
# The most ends of one round; then it is left to finish.
MOST = 8
# A sweep that takes so many seconds hangs.
HANGS = 300


class Campaign:
    def __init__(self, place, names, kills, seed, device):
        self.place, self.names, self.kills, self.seed = place, names, kills, seed
        self.more = ["--device", device, "--together", "1"] if device else []
        self.lock = threading.Lock()
        self.counts = {name: collections.Counter() for name in names}
        self.sent = collections.Counter()
        self.problems = []

    def total(self):
        return sum(self.sent.values())

    def work(self, jobs):
        with ThreadPoolExecutor(jobs) as pool:
            references = dict(zip(self.names, pool.map(lambda name: self.place.reference(name, *self.more), self.names)))
            rounds = ((name, number) for number in range(1_000_000) for name in self.names)
            rounds_lock = threading.Lock()

            def worker(_):
                while True:
                    with rounds_lock:
                        # Every kind has a turn, however few signals are asked for.
                        name, number = next(rounds)
                        if number > 0 and self.total() >= self.kills:
                            return
                    self.round(name, number, *references[name])

            list(pool.map(worker, range(jobs)))

    def round(self, name, number, expected, seconds):
        """One sweep, ended again and again until it finishes."""
        chance = random.Random(f"{self.seed}/{name}/{number}")
        folder = self.place.folder(name)
        out, log = folder / "out", []
        ends = chance.randint(1, MOST)
        finished = False
        while not finished:
            # By the clock; when so many files (scratch files too, and each new one in the place of another) were seen; or so many checkpoints.
            by, at = chance.choice(["clock", "file"] if name in AT_ONCE else ["clock", "file", "checkpoint"]), chance.random()
            moment = {"clock": at * seconds, "file": int(at * 1.2 * len(expected)), "checkpoint": int(at * 4)}[by]
            what, row, _ = chance.choices(KINDS_OF_ENDS, [weight for *_, weight in KINDS_OF_ENDS])[0]
            pauses = [chance.random() * item for item in row if isinstance(item, float)]
            end = (by, moment, what, row, pauses) if ends > 0 else None
            ends -= 1
            finished, problem = self.start(name, folder, end, log)
            if problem:
                self.problem(name, number, problem, log)
                return
        changed = differences(expected, contents(out))
        left = strays(out)
        with self.lock:
            counts = self.counts[name]
            counts["rounds"] += 1
            counts["differences"] += len(changed)
            counts["strays"] += len(left)
        if changed or left:
            self.problem(name, number, f"other bytes in {changed[:6]}, left behind {left[:6]}", log)
        else:
            shutil.rmtree(folder)

    def start(self, name, folder, end, log):
        """Starts the sweep's command and ends it as `end` says; whether it finished, and what went wrong."""
        resumed = len(list((folder / "out").glob("runs/*/checkpoint.safetensors")))
        with self.lock:
            self.counts[name]["resumed"] += resumed
        with open(folder / "stderr", "wb") as stderr:
            # A short time between checkpoints, so that those of the timer are written, too.
            child = subprocess.Popen(self.place.command(name, *self.more), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                                     env=environment(PUDICA_CHECKPOINT_SECONDS=0.02))
        allowed = {0}
        if end is not None:
            by, moment, what, row, pauses = end
            wait_until(child, folder / "out", by, moment)
            if child.poll() is None:
                log.append(f"{what} after {moment:.3f} s" if by == "clock" else f"{what} at {by} {moment + 1}")
                with self.lock:
                    self.sent[what] += 1
                    self.counts[name]["signals"] += 1
                    self.counts[name]["KILL"] += "KILL" in what
                for item in row:
                    if isinstance(item, float):
                        time.sleep(pauses.pop(0))
                    else:
                        child.send_signal(item)
                        # As a shell says it where the process answers, as the system does where it had no time to.
                        allowed |= {128 + item, -item}
        try:
            code = child.wait(HANGS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return False, f"hangs: not ended after {HANGS} s"
        said = (folder / "stderr").read_text(errors="replace").strip()
        if code not in allowed or "panicked" in said:
            return False, f"ended with {code}: {said[-600:]}"
        return code == 0, None

    def problem(self, name, number, text, log):
        with self.lock:
            self.counts[name]["problems"] += 1
            self.problems.append(f"{name}, round {number} ({'; '.join(log)}): {text}")

    def table(self):
        print(f"{'kind':<15}{'rounds':>8}{'signals':>9}{'KILL':>7}{'checkpoints':>13}{'files that differ':>19}{'left behind':>13}{'problems':>10}")
        total = collections.Counter()
        for name in self.names:
            total.update(self.counts[name])
        for name, counts in [*self.counts.items(), ("all", total)]:
            print(f"{name:<15}{counts['rounds']:>8}{counts['signals']:>9}{counts['KILL']:>7}{counts['resumed']:>13}{counts['differences']:>19}{counts['strays']:>13}"
                  f"{counts['problems']:>10}")
        print("signals: " + ", ".join(f"{what} {count}" for what, count in self.sent.most_common()))


def wait_until(child, out, by, moment):
    """Waits for a moment, or the end of the process if that is earlier: a time, or that more files than this were seen."""
    if by == "clock":
        try:
            child.wait(moment)
        except subprocess.TimeoutExpired:
            pass
        return
    seen = set()
    while child.poll() is None:
        seen.update(found for found in files(out) if by == "file" or "checkpoint.safetensors" in found[0])
        if len(seen) > moment:
            return
        time.sleep(0.001)


def files(folder):
    """The files under a folder, with what tells one from another in its place."""
    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from files(entry.path)
            else:
                yield entry.path, entry.inode()
    except OSError:
        pass  # it has gone meanwhile


def run(place, names, kills, seed, jobs, device):
    """Whether all is well."""
    begun = time.monotonic()
    campaign = Campaign(place, names, kills, seed, device)
    campaign.work(jobs)
    campaign.table()
    print(f"{campaign.total()} signals in {time.monotonic() - begun:.0f} s, seed {seed}")
    for text in campaign.problems[:20]:
        print(f"  {text}")
    return not campaign.problems
