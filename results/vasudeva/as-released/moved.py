"""How often answers change when noise lies on a patch of the grid, and on one that is moved by half a patch, over the same pixels:

    python3 results/vasudeva/as-released/moved.py

Moved patches leave out two pixels at each side. Of the patches of the grid that are cut there, a half or a quarter counts.
"""
import csv
import pathlib

HERE = pathlib.Path(__file__).parent

for folder in ("small-networks", "checkpoints"):
    cells = list(csv.DictReader((HERE / folder / "map.csv").open()))
    last = max(int(cell["x"]) for cell in cells)
    half = lambda at: 0.5 if at in (0, last) else 1.0
    for row in csv.DictReader((HERE / folder / "moved.csv").open()):
        if row["response"] != "label":
            continue
        own = [(half(int(cell["x"])) * half(int(cell["y"])), float(cell["value"])) for cell in cells if cell["panel"] == row["model"]]
        grid = sum(weight * value for weight, value in own) / sum(weight for weight, _ in own)
        moved, low, high = (float(row[column]) for column in ("value", "ci95_low", "ci95_high"))
        print(f"{row['model']:12} on the grid {grid:.3f}, moved {moved:.3f} [{low:.3f}, {high:.3f}], ratio {moved / grid:.2f}")
