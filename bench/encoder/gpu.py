"""The same training step on the first NVIDIA GPU: PyTorch eager and `pudica bench encoder --device cuda` in one run.

    python bench/encoder/gpu.py [--pudica target/release/pudica] [--replicas 40] [N ...]

Runs under a Python whose torch sees the GPU; prints one table.
"""
import argparse, json, os, statistics, subprocess, sys

parser = argparse.ArgumentParser()
parser.add_argument("--pudica", default="target/release/pudica")
parser.add_argument("--replicas", default="40")
parser.add_argument("lengths", nargs="*", default=["10", "20", "30"])
options = parser.parse_args()

steps = os.path.join(os.path.dirname(__file__), "torch_steps.py")
torch = subprocess.Popen([sys.executable, steps, "1", "1024", "cuda"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print("PyTorch:", torch.stdout.readline().strip())
print(f"ours:    {options.replicas} replicas in lock-step; d = 128, 2 layers, 2 heads, ff = 128, batch 1024; medians, ms a replica-step")
print(f"{'n':>4} {'PyTorch eager':>14} {'f32':>9} {'ratio':>7} {'tf32':>9} {'ratio':>7} {'forward':>9}", flush=True)
for n in options.lengths:
    torch.stdin.write(f"{n} 100\n")
    torch.stdin.flush()
    eager = statistics.median(map(float, torch.stdout.readline().split()))
    row = f"{n:>4} {eager:>14.3f}"
    for precision in ("f32", "tf32"):
        command = [options.pudica, "bench", "encoder", "--n", n, "--replicas", options.replicas, "--device", "cuda",
                   "--dtype", precision, "--seconds", "2", "--json"]
        ours = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        row += f" {ours['ms_per_replica_step']:>9.4f} {eager / ours['ms_per_replica_step']:>6.1f}x"
    print(row + f" {ours['forward_ms']:>9.4f}", flush=True)
