"""What ../../README.md says about these runs and summary.json does not: python3 results/hahn/dynamics-long/compare.py

Reads the runs (both archives) and those of ../dynamics, which have the same settings but fewer steps and were computed by older kernels."""
import csv
import json
import math
import pathlib
import tarfile
from statistics import mean, stdev

HERE = pathlib.Path(__file__).parent
LEARNED, STEPS_THERE = 0.01, 20_000
FIRST_OF_NEWER_KERNELS = 28  # the seed


def runs(folder=HERE):
    """{(weight decay, seed): the lines of its metrics}"""
    found, configs = {}, {}
    for part in sorted(folder.glob("runs*.tar.xz")):
        with tarfile.open(part) as archive:
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


def fisher(of_older, older, of_newer, newer):
    """Two-sided p of Fisher's exact test: so many of the older runs, so many of the newer."""
    all_of, total = of_older + of_newer, older + newer
    chances = [math.comb(older, k) * math.comb(newer, all_of - k) / math.comb(total, all_of) 
               for k in range(max(0, all_of - newer), min(older, all_of) + 1)]
    seen = math.comb(older, of_older) * math.comb(newer, of_newer) / math.comb(total, all_of)
    return sum(chance for chance in chances if chance <= seen * (1 + 1e-9))


def by_kernels(what, own, chosen):
    """How many runs of the older and of the newer kernels are among those chosen."""
    older = [seed for seed in own if seed < FIRST_OF_NEWER_KERNELS]
    newer = [seed for seed in own if seed >= FIRST_OF_NEWER_KERNELS]
    of_older, of_newer = (len(set(chosen) & set(seeds)) for seeds in (older, newer))
    print(f"  {what}: {of_older} of {len(older)} with older kernels, {of_newer} of {len(newer)} with newer ones:"
          f" Fisher's exact test, p {fisher(of_older, len(older), of_newer, len(newer)):.2g}")


def main():
    here = runs()
    there = {}
    for row in csv.DictReader((HERE / "../dynamics/learned.csv").open()):
        there[float(row["weight_decay"]), int(row["seed"])] = row["learned_at"] != ""  # seeds made twice: the newer kernels
    now = {key: first_learned(lines, STEPS_THERE) is not None for key, lines in here.items()}
    only_now = sorted(key for key in now if now[key] and not there[key])
    only_then = sorted(key for key in now if not now[key] and there[key])
    discordant, least = len(only_now) + len(only_then), min(len(only_now), len(only_then))
    p = min(1.0, 2 * sum(math.comb(discordant, k) for k in range(least + 1)) / 2**discordant)
    print(f"below {LEARNED} within {STEPS_THERE} steps: {sum(now.values())} of {len(now)} here, {sum(there[key] for key in now)} there;"
          f" only here {only_now}, only there {only_then} (weight decay, seed): exact McNemar test, p {p:.2g}")
    for decay in (0.0, 0.1):
        own = {seed: lines for (of, seed), lines in here.items() if of == decay and first_learned(lines) is not None}
        late = [seed for seed, lines in own.items() if first_learned(lines) > STEPS_THERE]
        lost = [seed for seed, lines in own.items() if lines[-1]["loss"] > 0.1]
        print(f"weight decay {decay}: {len(own)} of {sum(of == decay for of, _ in here)} learn, after step {STEPS_THERE}: seeds {sorted(late)}; lost again at the end: seeds {sorted(lost)}")
        by_kernels("lost", own, lost)
        by_kernels("norm above 25 at the end", own, [seed for seed, lines in own.items() if lines[-1]["param_norm"] > 25])
        for part, seeds in (("older", range(FIRST_OF_NEWER_KERNELS)), ("newer", range(FIRST_OF_NEWER_KERNELS, 101))):
            print(f"  sharpness at the end, {part} kernels: {described([lines[-1]['sharpness'] for seed, lines in own.items() if seed in seeds and seed not in lost])}")
        large = {seed: round(lines[-1]["param_norm"], 1) for seed, lines in sorted(own.items()) if lines[-1]["param_norm"] > 25}
        if decay:
            print(f"  norms above 25 by seed: {large}")
        kept = {seed: lines for seed, lines in own.items() if seed not in lost}
        for step in (10_000, 30_000, 100_000):
            values = [line["sharpness"] for lines in kept.values() for line in lines if line["step"] == step]
            print(f"  sharpness at step {step} of those that keep it: {described(values)}")
        print(f"  log10 blowup at the end: {described([math.log10(lines[-1]['blowup']) for lines in kept.values()])},"
              f" norm {described([lines[-1]['param_norm'] for lines in kept.values()])}")
    control = runs(HERE / "f32-n8")
    left = sum(any(line["loss"] > LEARNED for line in lines if line["step"] > first_learned(lines)) for lines in control.values())
    ends = [lines[-1]["loss"] for lines in control.values()]
    norms = max(lines[-1]["param_norm"] for (decay, _), lines in control.items() if decay)
    print(f"f32-n8: {len(control)} runs, losses at the end {min(ends):.1e} to {max(ends):.1e}, {left} were above {LEARNED} again for a while;"
          f" largest norm with weight decay {norms:.1f}")


main()
