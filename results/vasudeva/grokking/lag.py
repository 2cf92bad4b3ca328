"""By how many epochs the halves of sensitivity's fall and of test accuracy's rise are apart, over the seeds here and below cpu/: mean, and its 95 % interval by Student's t.

    python3 results/vasudeva/grokking/lag.py
"""
import csv
import math
import pathlib
import statistics

HERE = pathlib.Path(__file__).parent
T = {5: 2.7764, 6: 2.5706, 7: 2.4469, 8: 2.3646, 9: 2.3060, 10: 2.2622}  # 97.5 % quantiles for as many seeds

runs = [run for table in (HERE / "results.csv", *sorted(HERE.glob("cpu/**/results.csv"))) for run in csv.DictReader(open(table))]
lags = [float(run["test_rise_half"]) - float(run["sensitivity_fall_half"]) for run in runs]
error = statistics.stdev(lags) / math.sqrt(len(lags))
half = T[len(lags)] * error
for run in runs:
    print(f"seed {run['seed']}: sensitivity half down at epoch {float(run['sensitivity_fall_half']):.0f}, test accuracy half up at {float(run['test_rise_half']):.0f}")
mean = statistics.mean(lags)
first = sum(lag > 0 for lag in lags)
chance = sum(math.comb(len(lags), k) for k in range(len(lags) + 1) if abs(2 * k - len(lags)) >= abs(2 * first - len(lags))) / 2 ** len(lags)
print(f"sensitivity is first in {first} of {len(lags)}: sign test, p {chance:.2g}")
print(f"{len(lags)} seeds: {mean:,.0f} epochs, 95 % interval {mean - half:,.0f} to {mean + half:,.0f}")
