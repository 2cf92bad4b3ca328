"""What a GPU did: kernels.py TRACE [ROWS], of a trace that profile.cpp or torch.profiler wrote."""
import collections, json, sys

events = json.load(open(sys.argv[1]))["traceEvents"]
kernels = sorted((e["ts"], e["dur"], e["name"]) for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
if not kernels:
    sys.exit("no kernels in it: record for longer, or later")
busy, end = 0.0, 0.0
for start, length, _ in kernels:
    busy += max(0.0, start + length - max(start, end))
    end = max(end, start + length)
span = end - kernels[0][0]
print(f"{span / 1e3:.1f} ms, {len(kernels)} kernels, busy {busy / 1e3:.1f} ms ({100 * busy / span:.0f} %)")
by_name = collections.defaultdict(lambda: [0, 0.0])
for _, length, name in kernels:
    by_name[name][0] += 1
    by_name[name][1] += length
for name, (number, length) in sorted(by_name.items(), key=lambda row: -row[1][1])[: int(sys.argv[2]) if len(sys.argv) > 2 else 20]:
    print(f"{length / 1e3:9.3f} ms {number:6} x {name[:110]}")
