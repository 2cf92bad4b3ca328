"""What ../../README.md says about these runs and summary.json does not: python3 results/hahn/scratchpad/compare.py

Reads the runs (runs.tar.xz): how many converge at each length, and after how many steps the loss is below 0.01."""
import json
import math
import pathlib
import tarfile
from statistics import mean, median

HERE = pathlib.Path(__file__).parent
LEARNED, STEPS = 0.01, 10_000


def runs():
    """The runs: their lengths, seeds, summaries and lines of metrics."""
    files = {}
    with tarfile.open(HERE / "runs.tar.xz") as archive:
        for member in archive:
            name = pathlib.PurePath(member.name)
            if name.name in ("config.json", "summary.json"):
                files.setdefault(name.parent, {})[name.stem] = json.load(archive.extractfile(member))
            elif name.name == "metrics.jsonl":
                files.setdefault(name.parent, {})["lines"] = [json.loads(line) for line in archive.extractfile(member)]
    return sorted((own["config"]["n"], own["config"]["seed"], own["summary"], own["lines"]) for own in files.values() if "summary" in own)


def fitted(points):
    """Slope, its standard error, intercept."""
    x, y = zip(*points)
    mx, my = mean(x), mean(y)
    square = sum((a - mx) ** 2 for a in x)
    slope = sum((a - mx) * (b - my) for a, b in points) / square
    rest = sum((b - my - slope * (a - mx)) ** 2 for a, b in points)
    return slope, math.sqrt(rest / (len(points) - 2) / square), my - slope * mx


def correlation(x, y):
    mx, my = mean(x), mean(y)
    along = sum((a - mx) * (b - my) for a, b in zip(x, y))
    return along / math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))


def main():
    all_runs = runs()
    learned_at, sharpness, early = [], [], {}
    print("n: converged of made, median step below 0.01, sharpness of the converged, their accuracy when they read their own outputs")
    for length in sorted({n for n, *_ in all_runs}):
        own = [(summary, lines) for n, _, summary, lines in all_runs if n == length]
        steps = [next((line["step"] for line in lines if line["train_loss"] < LEARNED), None) for _, lines in own]
        kept = [summary["measures"] for summary, _ in own if summary["converged"]]
        learned_at += [(length, step) for step in steps if step is not None] if None not in steps else []
        sharpness += [(length, measures["sharpness"]) for measures in kept]
        if len(kept) == len(own) == 10:
            early[length] = correlation([-step for step in steps], [measures["sharpness"] for measures in kept])
        of_kept = f"{mean(own['sharpness'] for own in kept):.3f}, {mean(own['decode_accuracy'] for own in kept):.3f}" if kept else "-"
        middle = median(step if step is not None else math.inf for step in steps)
        print(f"{length:5}: {len(kept):2} of {len(own):2}, {middle if middle < math.inf else 'not within 10,000'}, {of_kept}")
    slope, error, start = fitted(learned_at)
    print(f"steps until the loss is below {LEARNED}, at lengths where it is in all runs: {slope:.1f} ± {error:.1f} for each bit, {start:.0f} at 0; so {STEPS} at n = {(STEPS - start) / slope:.0f}")
    print("sharper the earlier it was learned, r at equal length: " + ", ".join(f"{length}: {r:.2f}" for length, r in early.items()))
    slope, error, start = fitted(sharpness)
    print(f"sharpness of the {len(sharpness)} converged: {1e3 * slope:.2f} ± {1e3 * error:.2f} thousandths for each bit, {slope / error:.1f} standard errors; {slope / 0.05:.1%} of PARITY's published slope")


if __name__ == "__main__":
    main()
