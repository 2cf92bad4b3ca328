"""The other side of the spectrum benchmark: boofun's Fourier coefficients of one random function, median in ms."""
import json, statistics, sys, time, warnings

warnings.simplefilter("ignore")
import boofun as bf, numpy as np

n = int(sys.argv[1])
table = np.random.default_rng(1).integers(0, 2, 2**n).astype(bool)
bf.create(table[: 2**10]).fourier()  # compile numba's part first
times = []
for _ in range(5):
    f = bf.create(table)
    start = time.perf_counter()
    f.fourier(force_recompute=True)
    times.append((time.perf_counter() - start) * 1e3)
print(json.dumps({"ms": statistics.median(times), "versions": {"boofun": bf.__version__, "numpy": np.__version__}}))
