"""What README.md here says about the runs and summary.json does not: python3 results/hahn/tradeoff/fits.py"""
import csv
import math
import pathlib
from statistics import mean, stdev

HERE = pathlib.Path(__file__).parent
TARGETS = ("parity", "majority", "first", "mean")


def fit(y, *columns):
    """Least squares of y on columns and a constant, by Gauss-Jordan on the normal equations: [(slope, its standard error)], and the
    standard deviation of what is left."""
    y = [value - mean(y) for value in y]
    x = [[(value - mean(column)) for value in column] for column in columns]
    scale = [math.sqrt(sum(v * v for v in column)) for column in x]
    x = [[v / s for v in column] for column, s in zip(x, scale)]
    dot = lambda a, b: sum(p * q for p, q in zip(a, b))
    size = len(x)
    rows = [[dot(a, b) for b in x] + [float(i == j) for j in range(size)] for i, a in enumerate(x)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(size):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    inverse = [row[size:] for row in rows]
    slopes = [sum(row[j] * dot(x[j], y) for j in range(size)) for row in inverse]
    left = [value - sum(s * column[i] for s, column in zip(slopes, x)) for i, value in enumerate(y)]
    noise = dot(left, left) / (len(y) - size - 1)
    return [(slope / s, math.sqrt(noise * inverse[i][i]) / s) for i, (slope, s) in enumerate(zip(slopes, scale))], math.sqrt(noise)


def p_value(slope, error):
    """Two-sided, of the normal distribution (over 300 runs each)."""
    return math.erfc(abs(slope / error) / math.sqrt(2))


def told(slope, error):
    return f"{slope:.5f} ± {error:.5f} ({slope / error:.1f} errors, p {p_value(slope, error):.2g})"


runs = list(csv.DictReader((HERE / "results.csv").open()))
kept = {target: [(int(r["n"]), float(r["param_norm"]), math.log10(float(r["blowup"])))
                 for r in runs if r["target"] == target and r["converged"] == "true"] for target in TARGETS}
ways = {
    "linear in the norm, as in summary.json": lambda n, w: [w, n],
    "with the norm's square and cube": lambda n, w: [w, [v**2 for v in w], [v**3 for v in w], n],
    "the same, n >= 10": lambda n, w: [w, [v**2 for v in w], [v**3 for v in w], n],
}
for name, columns in ways.items():
    print(f"## log10 blowup, {name}: slope on n")
    slopes = {}
    for target in TARGETS:
        rows = [row for row in kept[target] if not name.endswith("n >= 10") or row[0] >= 10]
        n, norm, blowup = (list(column) for column in zip(*rows))
        found, left = fit(blowup, *columns(n, norm))
        slopes[target] = found[-1]
        print(f"{target}: {len(rows)} runs, {told(*found[-1])}, spread about the fit {left:.3f}"
              + (f"; on the norm {told(*found[0])}" if len(found) == 2 else ""))
    for target in TARGETS[1:]:
        (a, b), (c, d) = slopes["parity"], slopes[target]
        print(f"  parity - {target}: {told(a - c, math.hypot(b, d))}")

print("## mean log10 blowup at norms 18 to 24, by length")
for target in TARGETS:
    for low, high in ((4, 6), (7, 11), (12, 18), (19, 25)):
        here = [row[2] for row in kept[target] if low <= row[0] <= high and 18 <= row[1] < 24]
        print(f"{target} n = {low}..{high}: {mean(here):.2f} ± {stdev(here) / math.sqrt(len(here)):.2f} ({len(here)} runs), a blowup of {10 ** mean(here):.1f}")

print("## PARITY with the norm's powers, by lengths: slope on n")
for low, high in ((4, 9), (10, 15), (16, 25)):
    n, norm, blowup = (list(column) for column in zip(*(row for row in kept["parity"] if low <= row[0] <= high)))
    found, _ = fit(blowup, norm, [v**2 for v in norm], [v**3 for v in norm], n)
    print(f"n = {low}..{high}: {told(*found[-1])}")

print("## what converged, of what was planned")
for target in TARGETS:
    of = [r for r in runs if r["target"] == target]
    print(target, {n: f"{sum(r['converged'] == 'true' for r in of if int(r['n']) == n)}/{sum(int(r['n']) == n for r in of)}" for n in range(4, 26)})
lost = [r for r in runs if r["converged"] != "true"]
print("losses of the discarded:", sum(float(r["eval_loss"]) > 0.2 for r in lost), "above 0.2,", sorted(f"{float(r['eval_loss']):.3g}" for r in lost if float(r["eval_loss"]) <= 0.2))
print("weight decay over 0.3:", sum(float(r["weight_decay"]) > 0.3 for r in lost), "rate over 4e-4 or under 2e-4:", sum(float(r["lr"]) > 4e-4 for r in lost), sum(float(r["lr"]) < 2e-4 for r in lost), "of", len(lost))
