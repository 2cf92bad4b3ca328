"""A recipe of the 506 runs that README.md here says have no sharpness:

    python3 results/hahn/tradeoff/again.py > again.toml; pudica run again.toml --scale paper --device cuda --dtype tf32
"""
import csv
import pathlib

HERE = pathlib.Path(__file__).parent

print('title = "Parameter norm against LayerNorm blowup: the runs without sharpness"')
print('figures = "tradeoff"')
print("[paper]")
with open(HERE / "results.csv") as file:
    for run in csv.DictReader(file):
        if run["sharpness"]:
            continue
        print(f'[[paper.sweep]]\nname = "{run["target"]} {run["run_id"]}"')
        settings = {"target": f'"{run["target"]}"', "n": run["n"], "seed": run["seed"]}
        settings |= {"train.weight_decay": run["weight_decay"], "train.lr": run["lr"]}
        print("set = {", ", ".join(f"{name} = {value}" for name, value in settings.items()), "}")
