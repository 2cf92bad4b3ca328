"""What ../../README.md says about these runs and summary.json does not: python3 results/hahn/dynamics-long/compare.py

Reads the runs (runs.tar.xz) and those of ../dynamics, which have the same settings but fewer steps and were computed by older kernels."""
import csv
import json
import math
import pathlib
import tarfile
from statistics import mean, stdev

HERE = pathlib.Path(__file__).parent
LEARNED, STEPS_THERE = 0.01, 20_000


def runs():
    """{(weight decay, seed): the lines of its metrics}"""
    found, configs = {}, {}
    with tarfile.open(HERE / "runs.tar.xz") as archive:
        for member in archive:
            name = pathlib.PurePath(member.name)
            if name.name == "config.json":
                config = json.load(archive.extractfile(member))
                configs[name.parent] = (config["train"]["weight_decay"], config["seed"])
            elif name.name == "metrics.jsonl":
                found[name.parent] = [json.loads(line) for line in archive.extractfile(member)]
    return {configs[folder]: lines for folder, lines in found.items()}


def first_learned(lines, until=math.inf):
    return next((line["step"] for line in lines if line["loss"] < LEARNED and line["step"] <= until), None)


def described(values):
    return f"{mean(values):.2f} ± {stdev(values) / math.sqrt(len(values)):.2f} ({len(values)} runs)"


def main():
    here = runs()
    there = {}
    for row in csv.DictReader((HERE / "../dynamics/learned.csv").open()):
        there[float(row["weight_decay"]), int(row["seed"])] = row["learned_at"] != ""  # seeds made twice: the newer kernels
    now = {key: first_learned(lines, STEPS_THERE) is not None for key, lines in here.items()}
    only_now = [key for key in now if now[key] and not there[key]]
    only_then = [key for key in now if not now[key] and there[key]]
    discordant, least = len(only_now) + len(only_then), min(len(only_now), len(only_then))
    p = min(1.0, 2 * sum(math.comb(discordant, k) for k in range(least + 1)) / 2**discordant)
    print(f"below {LEARNED} within {STEPS_THERE} steps: {sum(now.values())} of {len(now)} here, {sum(there[key] for key in now)} there;"
          f" only here {only_now}, only there {only_then} (weight decay, seed): exact McNemar test, p {p:.2g}")
    for decay in (0.0, 0.1):
        own = {seed: lines for (of, seed), lines in here.items() if of == decay and first_learned(lines) is not None}
        late = [seed for seed, lines in own.items() if first_learned(lines) > STEPS_THERE]
        lost = [seed for seed, lines in own.items() if lines[-1]["loss"] > 0.1]
        print(f"weight decay {decay}: {len(own)} of {sum(of == decay for of, _ in here)} learn, after step {STEPS_THERE}: seeds {sorted(late)}; lost again at the end: seeds {sorted(lost)}")
        kept = {seed: lines for seed, lines in own.items() if seed not in lost}
        for step in (10_000, 30_000, 100_000):
            values = [line["sharpness"] for lines in kept.values() for line in lines if line["step"] == step]
            print(f"  sharpness at step {step} of those that keep it: {described(values)}")
        print(f"  log10 blowup at the end: {described([math.log10(lines[-1]['blowup']) for lines in kept.values()])},"
              f" norm {described([lines[-1]['param_norm'] for lines in kept.values()])}")


main()
