"""How often answers change when noise lies on a patch of the grid, and on one that is moved by so many pixels, over the same part of the images:

    python3 results/vasudeva/as-released/moved.py

Moved patches leave out some pixels at each side. Patches of the grid that are cut there count by the part that is left.
"""
import csv
import pathlib

HERE = pathlib.Path(__file__).parent


def part_left(at, last, offset, size):
    """Of a row (or column) of patches."""
    return {0: (size - offset) / size, last: offset / size}.get(at, 1.0)


for folder in ("small-networks", "checkpoints", "mnist"):
    cells = list(csv.DictReader((HERE / folder / "map.csv").open()))
    last = max(int(cell["x"]) for cell in cells)
    for row in csv.DictReader((HERE / folder / "moved.csv").open()):
        if row["response"] != "label" or not row["nudge.offset"]:
            continue
        offset, size = int(row["nudge.offset"]), int(row["nudge.size"])
        weight, changes = 0.0, 0.0
        for cell in cells:
            if cell["panel"] in (row["model"], ""):
                # Rows are counted from below in the map.
                own = part_left(int(cell["x"]), last, offset, size) * part_left(last - int(cell["y"]), last, offset, size)
                weight, changes = weight + own, changes + own * float(cell["value"])
        grid, moved = changes / weight, float(row["value"])
        print(f"{row['model']:12} by {offset}: on the grid {grid:.3f}, moved {moved:.3f} [{float(row['ci95_low']):.3f}, {float(row['ci95_high']):.3f}], ratio {moved / grid:.2f}")
