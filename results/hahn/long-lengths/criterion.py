"""MEAN's losses beside the limit of convergence and what a constant reaches: python3 results/hahn/long-lengths/criterion.py > criterion.svg"""
import csv
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
with (HERE / "results.csv").open() as file:
    runs = [row for row in csv.DictReader(file) if row["target"] == "mean"]
for row in runs:
    row["n"], row["loss"], row["sharpness"] = int(row["n"]), float(row["eval_loss"]), float(row["sharpness"])
LIMIT = 1e-3
constant = lambda n: 1 / (4 * n)  # the variance of the mean of n fair bits
kinds = [
    ("learns MEAN, converged", "#0072b2", lambda row: row["loss"] < LIMIT and row["loss"] < constant(row["n"]) / 2),
    ("answers nearly a constant, counts as converged", "#d55e00", lambda row: constant(row["n"]) / 2 <= row["loss"] < LIMIT),
    ("answers nearly a constant, discarded", "#888888", lambda row: row["loss"] >= LIMIT),
]

left, top, width, height = 70, 20, 520, 320
x = lambda n: left + width * n / 520
y = lambda loss: top + height * (-1 - math.log10(loss)) / 7  # 0.1 down to 1e-8
line = lambda a, b, c, d, colour, more="": f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" stroke="{colour}" {more}/>'
text = lambda a, b, of, more="": f'<text x="{a:.1f}" y="{b:.1f}" {more}>{of}</text>'
out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 470" font-family="sans-serif" font-size="13" fill="#222">',
       '<title>MEAN at long lengths: loss against n, the limit of convergence, and the loss of the constant 1/2</title>',
       '<rect width="620" height="470" fill="white"/>']
for power in range(-8, 0):
    out += [line(left, y(10**power), left + width, y(10**power), "#e5e5e5"),
            text(left - 8, y(10**power) + 4, f'10<tspan dy="-5" font-size="10">{power}</tspan>', 'text-anchor="end"')]
for n in (4, 100, 200, 300, 400, 512):
    out += [line(x(n), top + height, x(n), top + height + 5, "#888"), text(x(n), top + height + 20, n, 'text-anchor="middle"')]
out.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#888"/>')
curve = " ".join(f"{x(n):.1f},{y(constant(n)):.1f}" for n in range(4, 513, 4))
out += [f'<polyline points="{curve}" fill="none" stroke="#222" stroke-width="1.5"/>', text(x(60), y(constant(60)) - 12, "the constant 1/2: 1/(4n)"),
        line(left, y(LIMIT), left + width, y(LIMIT), "#222", 'stroke-dasharray="5 4"'), text(x(515), y(LIMIT) - 7, "limit of convergence", 'text-anchor="end"')]
for place, (name, colour, holds) in enumerate(kinds):
    own = [row for row in runs if holds(row)]
    dot = lambda a, b: f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{colour}" fill-opacity="0.75" stroke="white" stroke-width="0.7"/>'
    out += [dot(x(row["n"]), y(row["loss"])) for row in own]
    out += [dot(left + 6, 406 + 20 * place), text(left + 18, 410 + 20 * place, f"{name}: {len(own)} runs")]
out += [text(left + width / 2, top + height + 42, "n", 'text-anchor="middle"'),
        text(0, 0, "loss at the end", f'text-anchor="middle" transform="translate(18 {top + height / 2}) rotate(-90)"'), "</svg>"]
print("\n".join(out))
for name, _, holds in kinds:
    own = [row for row in runs if holds(row)]
    print(f"{name}: {len(own)}, loss over that of the constant {min(r['loss'] / constant(r['n']) for r in own):.2g} to "
          f"{max(r['loss'] / constant(r['n']) for r in own):.2g}, sharpness {min(r['sharpness'] for r in own):.3g} to {max(r['sharpness'] for r in own):.3g}",
          file=sys.stderr)
