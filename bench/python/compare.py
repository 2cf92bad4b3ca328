"""Patch sensitivity of a ResNet in torch: `pudica.measure` beside the loop that one would write by hand. Both touch every patch of 4 x 4 pixels of every
image with N(0, 1) noise, ask the network in batches of the same size, and count changed labels, with a standard error over images. Each has a process of its own,
as it would have in life, and they take turns. Prints both times of every round, their medians, and the median ratio of loop to pudica (above 1: pudica is faster).
With --together they share one process, and so what pudica does to it: on the CPU it has glibc keep freed memory, which speeds up the loop as well."""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn

import pudica as pu


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside))
        same = stride == 1 and inside == outside
        self.skip = nn.Identity() if same else nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.skip(x))


def resnet(blocks, width):
    """The ResNets of He et al. for CIFAR-10: 3 stages of `blocks` blocks (3: ResNet-20)."""
    layers, inside = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()], width
    for stage in range(3):
        for place in range(blocks):
            outside = width << stage
            layers.append(Block(inside, outside, 2 if stage > 0 and place == 0 else 1))
            inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10))


def by_hand(net, images, draws, batch, device):
    """Batched over images, patches and draws; images and noise are made where the network is."""
    with torch.inference_mode():
        images = torch.from_numpy(images).to(device)
        clean = torch.cat([net(images[start : start + batch]).argmax(1) for start in range(0, len(images), batch)])
        count, side = len(images), images.shape[2] // 4
        sites = torch.arange(count * side * side * draws, device=device)
        changed = torch.zeros(count, device=device)
        for start in range(0, len(sites), batch):
            chosen = sites[start : start + batch]
            image, patch = chosen // (side * side * draws), chosen // draws % (side * side)
            touched = images[image]
            noise = torch.randn(len(chosen), 3, 4, 4, device=device)
            patches = touched.view(len(chosen), 3, side, 4, side, 4)
            rows, columns = patch // side, patch % side
            at = torch.arange(len(chosen), device=device)
            patches[at, :, rows, :, columns, :] += noise
            changed.index_add_(0, image, (net(touched).argmax(1) != clean[image]).float())
        each = (changed / (side * side * draws)).cpu().numpy()
    return each.mean(), each.std(ddof=1) / np.sqrt(count)


def sides(chosen):
    """The two that are compared, by name: each takes a seed and gives mean and standard error."""
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    net = resnet(chosen.blocks, chosen.width).eval().to(chosen.device)
    images = np.random.default_rng(0).normal(size=(chosen.images, 3, 32, 32)).astype(np.float32)

    def ours(seed):
        r = pu.measure(
            net, images, nudge=pu.PatchNoise(size=4, variance=1.0, draws=chosen.draws), response="label", batch=chosen.batch, seed=seed, progress=False
        )
        return float(r.mean), float(r.std_error)

    def loop(seed):
        torch.manual_seed(seed)
        mean, error = by_hand(net, images, chosen.draws, chosen.batch, chosen.device)
        return float(mean), float(error)

    return {"pudica": ours, "by hand": loop}


def timed(work, seed, device):
    """Seconds, seconds of processor time, and what was found."""
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    wait()
    began, cpu = time.perf_counter(), time.process_time()
    found = work(seed)
    wait()
    return time.perf_counter() - began, time.process_time() - cpu, found


def serve(chosen):
    """What a process of its own does: a line with a seed comes in, a line with times and results goes out."""
    work = sides(chosen)[chosen.serve]
    for line in sys.stdin:
        print(json.dumps(timed(work, int(line), chosen.device)), flush=True)


def started(name):
    """A process for one side, and the function that asks it."""
    process = subprocess.Popen([sys.executable, *sys.argv, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(seed):
        process.stdin.write(f"{seed}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        return json.loads(answer) if answer else sys.exit(f"the process of {name} has ended")

    return ask


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cpu")
    for name, default in [("images", 64), ("draws", 1), ("batch", 64), ("rounds", 5), ("width", 16), ("blocks", 3)]:
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--threads", type=int, default=0)
    options.add_argument("--together", action="store_true")
    options.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.serve:
        return serve(chosen)
    if chosen.together:
        ask = {name: lambda seed, work=work: timed(work, seed, chosen.device) for name, work in sides(chosen).items()}
    else:
        ask = {name: started(name) for name in ["pudica", "by hand"]}
    for name in ask:
        ask[name](99)  # warm
    ratios, cpu_ratios, times = [], [], []
    for round in range(chosen.rounds):
        order = list(ask) if round % 2 == 0 else list(ask)[::-1]
        found = {name: ask[name](round) for name in order}
        (own, own_cpu, (mean, error)), (other, other_cpu, (other_mean, other_error)) = found["pudica"], found["by hand"]
        ratios.append(other / own)
        cpu_ratios.append(other_cpu / own_cpu)
        times.append((own, other, own_cpu, other_cpu))
        print(f"round {round}: pudica {own:.3f} s ({mean:.4f} ± {error:.4f}), by hand {other:.3f} s ({other_mean:.4f} ± {other_error:.4f}), ratio {other / own:.3f}")
        if abs(mean - other_mean) > 6 * np.hypot(error, other_error) + 1e-9:
            sys.exit("the two do not measure the same")
    where = torch.cuda.get_device_name() if chosen.device != "cpu" else f"CPU, {chosen.threads or torch.get_num_threads()} threads"
    where += ", one process" if chosen.together else ", a process each"
    evaluations = chosen.images * (64 * chosen.draws + 1)
    own, other, own_cpu, other_cpu = (statistics.median(side) * 1e6 / evaluations for side in zip(*times))
    print(f"Python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}, pudica {pu.__version__}; {where}; batch {chosen.batch}")
    print(f"medians of {chosen.rounds} rounds, per evaluation: pudica {own:.1f} µs (CPU time {own_cpu:.1f}), by hand {other:.1f} µs ({other_cpu:.1f})")
    print(f"by hand / pudica = {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}; CPU time {statistics.median(cpu_ratios):.3f})")


if __name__ == "__main__":
    main()
