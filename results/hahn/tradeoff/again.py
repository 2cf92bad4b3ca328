"""A recipe of those of the 506 runs without sharpness (README.md here) that are not below again/ either; with lengths, as in `again.py 4`, of these lengths alone:

    python3 results/hahn/tradeoff/again.py > again.toml; pudica run again.toml --scale paper --device cuda --dtype tf32
"""
import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).parent


def rows(file):
    with open(file) as lines:
        return list(csv.DictReader(lines))


def named(run):
    return run["target"], run["n"], run["seed"]


made = {named(run) for file in HERE.glob("again/*/results.csv") for run in rows(file)}
print('title = "Parameter norm against LayerNorm blowup: the runs without sharpness"')
print('figures = "tradeoff"')
print("[paper]")
for run in rows(HERE / "results.csv"):
    if run["sharpness"] or named(run) in made or sys.argv[1:] and run["n"] not in sys.argv[1:]:
        continue
    print(f'[[paper.sweep]]\nname = "{run["target"]} {run["run_id"]}"')
    settings = {"target": f'"{run["target"]}"', "n": run["n"], "seed": run["seed"]}
    settings |= {"train.weight_decay": run["weight_decay"], "train.lr": run["lr"]}
    print("set = {", ", ".join(f"{name} = {value}" for name, value in settings.items()), "}")
