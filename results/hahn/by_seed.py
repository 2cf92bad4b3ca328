"""What ../README.md says about the paper-scale runs and summary.json does not: python3 results/hahn/by_seed.py"""
import csv
import math
import pathlib
import subprocess
from statistics import mean, median, stdev, variance

HERE = pathlib.Path(__file__).parent


def read(experiment, commit=None):
    """The runs of an experiment, as they are or as a commit had them."""
    path = f"{experiment}/results.csv"
    before = ["git", "-C", str(HERE), "show", f"{commit}:./{path}"]
    text = subprocess.run(before, check=True, capture_output=True, text=True).stdout if commit else (HERE / path).read_text()
    rows = list(csv.DictReader(text.splitlines()))
    for row in rows:
        row["n"], row["seed"], row["kept"] = int(row["n"]), int(row["seed"]), row["converged"] == "true"
        for name in ("sharpness", "blowup", "eval_loss", "param_norm", "average_sensitivity_real"):
            row[name] = float(row[name])
        row["log_blowup"] = math.log10(row["blowup"])
    return rows


def fit(y, *columns):
    """Least squares of y on columns: [(slope, its standard error)], and r where there is one column."""
    y = [value - mean(y) for value in y]
    x = [[value - mean(column) for value in column] for column in columns]
    dot = lambda a, b: sum(p * q for p, q in zip(a, b))
    if len(x) == 1:
        inverse = [[1 / dot(x[0], x[0])]]
    else:
        (a, b), d = (dot(x[0], x[0]), dot(x[0], x[1])), dot(x[1], x[1])
        inverse = [[d / (a * d - b * b), -b / (a * d - b * b)], [-b / (a * d - b * b), a / (a * d - b * b)]]
    slopes = [sum(row[j] * dot(x[j], y) for j in range(len(x))) for row in inverse]
    left = dot(y, y) - sum(slope * dot(column, y) for slope, column in zip(slopes, x))
    noise = left / (len(y) - len(x) - 1)
    errors = [math.sqrt(noise * inverse[i][i]) for i in range(len(x))]
    r = dot(x[0], y) / math.sqrt(dot(x[0], x[0]) * dot(y, y))
    return list(zip(slopes, errors)), r


def ranks(values):
    return [sum(other < value for other in values) + sum(other == value for other in values) / 2 for value in values]


def welch(one, other):
    """Welch's t of two samples, its degrees of freedom and two-sided p, the density of t being summed beyond |t|."""
    a, b = variance(one) / len(one), variance(other) / len(other)
    t, freedom = (mean(other) - mean(one)) / math.sqrt(a + b), (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    step = 1e-4
    within = sum(factor * (1 + x * x / freedom) ** (-(freedom + 1) / 2) for x in (step * (k + 0.5) for k in range(int(abs(t) / step))))
    return t, freedom, 1 - 2 * step * within


def column(rows, name):
    return [row[name] for row in rows]


def told(name, rows):
    ((slope, error),), r = fit(column(rows, "sharpness"), column(rows, "n"))
    print(f"{name}: slope {slope:.3g} ± {error:.2g}, r {r:.2f}, {len(rows)} runs")
    return slope


print("## length-scaling")
runs = read("length-scaling")
parity = [row for row in runs if row["target"] == "parity"]
print("PARITY converged:", {n: sum(row["kept"] for row in parity if row["n"] == n) for n in range(4, 31)})
for target in ("parity", "majority", "first", "mean"):
    kept = [row for row in runs if row["kept"] and row["target"] == target]
    told(f"{target} seeds 0..5", [row for row in kept if row["seed"] < 6])
    told(f"{target} seeds 6..9", [row for row in kept if row["seed"] > 5])
    slopes = [fit(column(own, "sharpness"), column(own, "n"))[0][0][0]
              for own in ([row for row in kept if row["seed"] == seed] for seed in range(10))]
    apart, freedom, p = welch(slopes[:6], slopes[6:])
    print(f"  slopes seed by seed: {mean(slopes):.3g} ± {stdev(slopes) / math.sqrt(10):.2g}, "
          f"{min(slopes):.3g} to {max(slopes):.3g}; 6..9 against 0..5: Welch's t {apart:.2f}, {freedom:.1f} degrees of freedom, p {p:.2f}")
    spread = [stdev([row["sharpness"] for row in kept if low <= row["n"] < low + 9]) for low in (4, 22)]
    print(f"  standard deviation at n = 4..12 {spread[0]:.2g}, n = 22..30 {spread[1]:.2g}")

for n in (16, 20, 24, 28):
    own = [row for row in runs if row["target"] == "majority" and row["n"] == n]
    again = [row["sharpness"] for row in read("length-scaling/repeated") if row["n"] == n]
    told_as = lambda name, values: f"{name} {mean(values):.3f} ± {stdev(values) / math.sqrt(len(values)):.3f}"
    print(f"MAJORITY n = {n}, mean sharpness:", "; ".join([
        told_as("seeds 0..5", [row["sharpness"] for row in own if row["seed"] < 6]),
        told_as("seeds 0..5 again", again),
        told_as("seeds 6..9", [row["sharpness"] for row in own if row["seed"] > 5])]))

print("## long-lengths")
runs = read("long-lengths")


def compare(name, before, after):
    """How far runs of the same settings ended apart, by two builds. What was not made again is the same file."""
    key = lambda row: (row["target"], row["n"], row["seed"])
    known = {key(row): row for row in after}
    twice = [(row, known[key(row)]) for row in before if row["seconds"] != known[key(row)]["seconds"]]
    ratios = sorted(abs(new["sharpness"] / old["sharpness"] - 1) for old, new in twice if old["kept"] and new["kept"])
    print(f"{name}: {len(twice)}, converged alike {sum(old['kept'] == new['kept'] for old, new in twice)}, both converged {len(ratios)}: "
          f"sharpness within 2 % {sum(r <= 0.02 for r in ratios)}, 5 % {sum(r <= 0.05 for r in ratios)}, the furthest {ratios[-1]:.2f}")
    for target in ("majority", "first", "mean"):
        pair = [[mean([row["sharpness"] for row in side if row["kept"]]) for side in zip(*own)]
                for own in ([both for both in twice if both[0]["target"] == target],) if own]
        print(f"  {target}: mean sharpness {pair}")


first, second = read("long-lengths", "e51c573"), read("long-lengths", "9ad7c4f")
compare("made by the first two builds", first, second)
compare("made by the second and the third", second, runs)
lengths = sorted({row["n"] for row in runs})
for target in ("majority", "first", "mean"):
    of = [row for row in runs if row["target"] == target]
    kept = [row for row in of if row["kept"]]
    for n in lengths:
        here = [row["sharpness"] for row in kept if row["n"] == n]
        lost = [f"{row['eval_loss']:.2g}" for row in of if row["n"] == n and not row["kept"]]
        seen = f"sharpness {min(here):.3f} to {max(here):.3f}, mean {mean(here):.3f}, median {median(here):.3f}, over 0.4: {sum(s > 0.4 for s in here)}, " if here else ""
        print(f"{target} n = {n}: {len(here)} of {len(here) + len(lost)} kept, {seen}losses of the others {lost}")
    told(f"{target} all", kept)
    told(f"{target} without n = 4", [row for row in kept if row["n"] > 4])
    told(f"{target} to n = 218", [row for row in kept if row["n"] <= 218])
    told(f"{target} n = 31..218", [row for row in kept if 4 < row["n"] <= 218])
    for name in ("log_blowup", "eval_loss", "param_norm"):
        rank = fit(ranks(column(kept, "sharpness")), ranks(column(kept, name)))[1]
        growth = fit(ranks(column(kept, name)), ranks(column(kept, "n")))[1]
        print(f"  sharpness and {name}: r {fit(column(kept, 'sharpness'), column(kept, name))[1]:.2f}, of ranks {rank:.2f}; {name} and n: of ranks {growth:.2f}")
    ((n_slope, n_error), (b_slope, b_error)), _ = fit(column(kept, "sharpness"), column(kept, "n"), column(kept, "log_blowup"))
    print(f"  on n and log10 blowup: {n_slope:.3g} ± {n_error:.2g} and {b_slope:.3g} ± {b_error:.2g}")
    slopes = [fit(column(own, "sharpness"), column(own, "n"))[0][0][0]
              for own in ([row for row in kept if row["seed"] == seed] for seed in range(10))]
    print(f"  slopes seed by seed: {mean(slopes):.3g} ± {stdev(slopes) / math.sqrt(10):.2g}")
for row in runs:
    if row["target"] == "mean" and row["eval_loss"] > 0.5 / (4 * row["n"]):
        print(f"MEAN n = {row['n']} seed {row['seed']}: loss {row['eval_loss']:.3g}, of the constant 1/2 {1 / (4 * row['n']):.3g}, "
              f"average sensitivity times n {row['average_sensitivity_real'] * row['n']:.2g}, kept: {row['kept']}")
learns = [row for row in runs if row["target"] == "mean" and row["kept"] and row["eval_loss"] < 0.5 / (4 * row["n"])]
told("MEAN without those that answer nearly a constant", learns)
told("  and without n = 4", [row for row in learns if row["n"] > 4])
there = [row["sharpness"] for row in learns if row["n"] >= 325]
print(f"  their sharpness from n = 325 on: {mean(there):.4f} ± {stdev(there) / math.sqrt(len(there)):.4f}")
