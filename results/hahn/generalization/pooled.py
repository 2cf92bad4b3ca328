"""All ten random functions of Figures 4 and 15 together, from the tables of the two parts: python3 results/hahn/generalization/pooled.py [PART...]

Prints what summary.json of a part has, with the same definitions: families, differences by Welch's t with 95 % intervals, and the relative difference
between sharpness on the training strings and on all strings. With one part it prints that part's own numbers again.
"""
import csv
import math
import pathlib
import sys
from statistics import mean, variance

HERE = pathlib.Path(__file__).parent


def inside(t, freedom):
    """How much of Student's t lies within -t and t, by Simpson's rule over the angle of x = sqrt(freedom) tan(angle)."""
    end, parts = math.atan(t / math.sqrt(freedom)), 2000
    density = lambda angle: math.cos(angle) ** (freedom - 1)
    odd = sum(density(end * (2 * k + 1) / (2 * parts)) for k in range(parts))
    even = sum(density(end * k / parts) for k in range(1, parts))
    area = end / (6 * parts) * (density(0) + density(end) + 4 * odd + 2 * even)
    return 2 * area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


def quantile(freedom):
    """The t beyond which 5 % lie, both sides together."""
    low, high = 1.9, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle, freedom) < 0.95 else (low, middle)
    return low


def told(value, error, freedom):
    reach = error * quantile(freedom)
    return f"{value:.4f} [{value - reach:.4f}, {value + reach:.4f}]"


def average(values):
    return told(mean(values), math.sqrt(variance(values) / len(values)), len(values) - 1)


def difference(one, other):
    a, b = variance(one) / len(one), variance(other) / len(other)
    return told(mean(one) - mean(other), math.sqrt(a + b), (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1)))


parts = sys.argv[1:] or ["six", "four"]
rows = [row for part in parts for row in csv.DictReader((HERE / part / "results.csv").open())]
assert len({row["run_id"] for row in rows}) == len(rows), "a run stands in two parts"
by_id = {row["run_id"]: row for row in rows}
kept = [row for row in rows if row["converged"] == "true"]
numbers = lambda some, name: [float(row[name]) for row in some]

# A family: one row per function that tells its sensitivity (of T1 every run: all fit their training strings), and the converged runs fitted to all strings of these functions.
learnt = lambda size: [row for row in rows if row["sweep"] == "learn" and row["train.set_size"] == str(size)]
families = {"f": ("original", lambda row: True)}
for size in (512, 256, 128):
    families[f"T1_{size}"] = ("refit", lambda row, size=size: by_id[row["parent"]]["train.set_size"] == str(size))
families["completion_256"] = ("completion", lambda row: True)
fits = {name: [row for row in kept if row["sweep"] == sweep and of(row)] for name, (sweep, of) in families.items()}
one_each = lambda some, key: list({row[key]: row for row in reversed(some)}.values())
functions = {name: learnt(name[3:]) if name.startswith("T1") else one_each(fits[name], "target") for name in families}

print(f"{len(rows)} runs, {len(kept)} kept, {len(rows) - len(kept)} discarded; functions {sorted({r['target'] for r in rows if r['sweep'] == 'original'})}")
for name in families:
    print(f"{name}: average sensitivity {average(numbers(functions[name], 'average_sensitivity'))} of {len(functions[name])} functions,"
          f" sharpness {average(numbers(fits[name], 'sharpness'))} of {len(fits[name])} runs")
for what, of in (("average_sensitivity", functions), ("sharpness", fits)):
    for size in (512, 256, 128):
        print(f"{what}: f minus T1 from {size} strings {difference(numbers(of['f'], what), numbers(of[f'T1_{size}'], what))}")
for more, fewer in ((512, 256), (256, 128)):
    print(f"average_sensitivity: T1 from {more} minus T1 from {fewer} strings "
          f"{difference(numbers(functions[f'T1_{more}'], 'average_sensitivity'), numbers(functions[f'T1_{fewer}'], 'average_sensitivity'))}")
both = [row for name in families for row in fits[name] if row["set_sharpness"]]
print(f"sharpness on the training strings against all: relative difference "
      f"{average([float(row['set_sharpness']) / float(row['sharpness']) - 1 for row in both])} of {len(both)} runs")
