"""Which runs learned PARITY, and whether the build mattered: python3 results/hahn/dynamics/learned.py

With folders of runs it writes learned.csv from them: learned.py RUNS REPEATED (paper scale; seeds 0..100, and seeds 0..7 again).
"""
import csv
import json
import math
import pathlib
import random
import sys
from statistics import mean, stdev

TABLE = pathlib.Path(__file__).parent / "learned.csv"
DECAYS = (0.0, 0.1, 0.2, 0.3)


def write(folders):
    with TABLE.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["part", "seed", "weight_decay", "build", "learned_at", "loss", "sharpness"])
        for part, folder in zip(("all", "repeated"), folders):
            out.writerows(sorted([part, *row] for row in map(read, pathlib.Path(folder, "runs").iterdir())))


def read(run):
    """Seed, weight decay, build, the first step with a loss below 0.01, loss and sharpness at the end."""
    settings, summary = (json.loads((run / name).read_text()) for name in ("config.json", "summary.json"))
    track = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    below = [row["step"] for row in track if row["loss"] < settings["track"]["converged_below"]]
    build = summary["made_by"]["program"].split("(")[1].rstrip(")")
    return settings["seed"], settings["train"]["weight_decay"], build, below[0] if below else "", track[-1]["loss"], track[-1]["sharpness"]


def by_chance(one, other, times=100_000):
    """How often seeds dealt at random differ at least as much in their mean."""
    far = lambda pool: abs(mean(pool[:len(one)]) - mean(pool[len(one):]))
    pool, seen = one + other, far(one + other)
    random.seed(0)
    return sum(far(random.sample(pool, len(pool))) >= seen - 1e-12 for _ in range(times)) / times


if len(sys.argv) > 1:
    write(sys.argv[1:])
runs = {"all": {}, "repeated": {}}
for row in csv.DictReader(TABLE.open()):
    runs[row["part"]][int(row["seed"]), float(row["weight_decay"])] = row
learned = {part: {key: row["learned_at"] != "" for key, row in of.items()} for part, of in runs.items()}

seeds = [sum(learned["all"][seed, decay] for decay in DECAYS) for seed in range(101)]
for name, part in (("0..50", seeds[:51]), ("51..58", seeds[51:59]), ("59..100", seeds[59:]), ("all", seeds)):
    print(f"seeds {name}: {sum(part)} of {4 * len(part)} learn; with all four weight decays {part.count(4)}, with none {part.count(0)}")
print(f"51..58 against 0..50 by permuting seeds: p {by_chance(seeds[:51], seeds[51:59]):.3f}")
print(f"59..100 against 0..50: p {by_chance(seeds[:51], seeds[59:]):.3f}; 51..100 against 0..50: p {by_chance(seeds[:51], seeds[51:]):.3f}")
print("\nseed: step of learning with weight decay 0, 0.1, 0.2, 0.3; then and again")
for seed in range(8):
    steps = [[runs[part][seed, decay]["learned_at"] or "-" for decay in DECAYS] for part in runs]
    print(f"{seed}:", " ".join(steps[0]), "|", " ".join(steps[1]))
twice = [(learned["all"][key], learned["repeated"][key], runs["all"][key], runs["repeated"][key]) for key in runs["repeated"]]
lost, won = (sum(pair[:2] == which for pair in twice) for which in ((True, False), (False, True)))
p = min(1, 2 * sum(math.comb(lost + won, k) for k in range(max(lost, won), lost + won + 1)) / 2 ** (lost + won))
print(f"learned {sum(pair[0] for pair in twice)}, again {sum(pair[1] for pair in twice)} of {len(twice)}; "
      f"only then {lost}, only now {won}, exact McNemar test p {p:.2f}")
pairs = [(then, again) for before, after, then, again in twice if before and after]
for name, value in (("step of learning", lambda row: float(row["learned_at"])), ("sharpness at the end", lambda row: float(row["sharpness"])),
                    ("log10 loss at the end", lambda row: math.log10(float(row["loss"])))):
    rises = [value(again) - value(then) for then, again in pairs]
    error = stdev(rises) / math.sqrt(len(rises))
    print(f"  {name}, {len(rises)} runs that learn both times: {mean(value(then) for then, _ in pairs):.4g} then; again minus then "
          f"{mean(rises):.3g} ± {error:.2g}, t {mean(rises) / error:.2f}")
print("  losses at the end of runs that learn neither time:",
      f"{min(float(r['loss']) for a, b, *rows in twice if not a and not b for r in rows):.4f} to "
      f"{max(float(r['loss']) for a, b, *rows in twice if not a and not b for r in rows):.4f}")
