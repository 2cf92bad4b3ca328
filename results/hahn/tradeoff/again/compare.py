"""The runs here beside those of the same settings and seeds in ../results.csv, which a GPU computed: python3 results/hahn/tradeoff/again/compare.py

Prints mean sharpness by function, and how far measures that both have are apart, in pairs, by a 95 % interval (1.96 standard errors)."""
import csv
import math
import pathlib
from statistics import mean, stdev

HERE = pathlib.Path(__file__).parent


def rows(file):
    with open(file) as lines:
        return list(csv.DictReader(lines))


def described(values):
    error = stdev(values) / math.sqrt(len(values))
    return f"{mean(values):.4f} ± {error:.4f} ({len(values)} runs)"


def main():
    all_there = rows(HERE.parent / "results.csv")
    there = {(run["target"], run["n"], run["seed"]): run for run in all_there}
    for file in sorted(HERE.glob("*/results.csv")):
        own = rows(file)
        pairs = [(run, there[run["target"], run["n"], run["seed"]]) for run in own]
        print(f"{file.parent.name}: {len(own)} runs, {sum(run['converged'] == 'true' for run in own)} converged here,"
              f" {sum(other['converged'] == 'true' for _, other in pairs)} on the GPU")
        for target in ("parity", "majority", "first", "mean"):
            found = [float(run["sharpness"]) for run in own if run["target"] == target and run["converged"] == "true"]
            print(f"  sharpness of {target}: {described(found)}")
            longer = str(int(own[0]["n"]) + 1)
            beside = [float(run["sharpness"]) for run in all_there
                      if run["target"] == target and run["n"] == longer and run["converged"] == "true" and run["sharpness"]]
            if beside:
                print(f"    at n = {longer} in ../results.csv: {described(beside)}")
        for name, of in (("log10 blowup", lambda run: math.log10(float(run["blowup"]))), ("norm", lambda run: float(run["param_norm"]))):
            apart = [of(run) - of(other) for run, other in pairs if run["converged"] == other["converged"] == "true"]
            error = 1.96 * stdev(apart) / math.sqrt(len(apart))
            print(f"  {name}, here minus there: {mean(apart):.4f}, {mean(apart) - error:.4f} to {mean(apart) + error:.4f} ({len(apart)} pairs)")


main()
