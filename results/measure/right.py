"""Label changes among the inputs that every model classifies right: python3 right.py FOLDER (a folder of `pudica measure`)."""
import csv, math, sys

rows = list(csv.DictReader(open(f"{sys.argv[1]}/inputs.csv")))
models = [name[: -len(" predicted")] for name in rows[0] if name.endswith(" predicted")]
right = [row for row in rows if all(row[f"{model} predicted"] == row["label"] for model in models)]
print(f"{len(right)} of {len(rows)} inputs are right by all")


def mean(values):
    m = sum(values) / len(values)
    return m, math.sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1) / len(values))


nudges = [name[len(models[0]) + 1 : -len(" label")] for name in rows[0] if name.startswith(models[0]) and name.endswith(" label")]
for nudge in nudges:
    if "corruption" in nudge:
        continue
    of = {model: [float(row[f"{model} {nudge} label"]) for row in right] for model in models}
    print(nudge, *(f"{model} {m:.4f} ± {e:.4f}" for model, (m, e) in ((model, mean(of[model])) for model in models)), sep="; ")
    for other in models[:-1]:
        m, e = mean([a - b for a, b in zip(of[models[-1]], of[other])])
        print(f"    {models[-1]} - {other}: {m:.4f} ± {e:.4f}")
