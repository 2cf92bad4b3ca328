"""Called by bench/measure/run: both sides one after the other, each once, and what they took."""
import glob, json, os, platform, shutil, subprocess, sys, tempfile, time

pudica, checkpoint, data, images, draws, few, many, threads = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
scratch = tempfile.mkdtemp(prefix="pudica-bench-")
onnx = os.path.join(scratch, "resnet20.onnx")
batch = (glob.glob(f"{data}/cifar10/test_batch.bin") + glob.glob(f"{data}/cifar10/test_batch.bin.gz"))[0]
# Asked in processes of their own: what this one holds would count as the peak of those that it starts.
ask = lambda code: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
library = glob.glob(os.path.dirname(ask("import onnxruntime; print(onnxruntime.__file__)")) + "/capi/libonnxruntime.so*")[0]
versions = ask("import onnxruntime, torch; print(f'onnxruntime {onnxruntime.__version__}, torch {torch.__version__} (export)')")
environment = {**os.environ, "PUDICA_ORT": library, "RAYON_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}


def run(command):
    """The output, the peak of memory in MiB, wall and CPU time in seconds."""
    start = time.perf_counter()
    with open(f"{scratch}/errors", "w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        if status != 0:
            errors.seek(0)
            sys.exit(f"{' '.join(command)}\n{errors.read()}")
    return out, usage.ru_maxrss / 1024, wall, usage.ru_utime + usage.ru_stime


def measured(model, *options, sample=images):
    folder = os.path.join(scratch, "out")
    shutil.rmtree(folder, ignore_errors=True)
    command = [pudica, "measure", model, "--inputs", "cifar10:test", "--data", data, "--sample", str(sample), "--normalise", "imagenet"]
    out, memory, wall, cpu = run(command + ["--response", "label", "--json", "--out", folder, *options])
    return json.loads(out), memory, wall, cpu


def line(name, wall, cpu, sensitivity, error, memory):
    ratios = f"{loop['seconds'] / wall:8.2f}x{loop['cpu'] / cpu:8.2f}x"
    print(f"{name:<34}{wall:9.1f}{cpu:9.1f}{ratios}{sensitivity:12.4f} ± {error:.4f}{memory:11.0f}", flush=True)


subprocess.run([sys.executable, f"{here}/export.py", checkpoint, onnx], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(f"{platform.processor() or platform.machine()}, {threads} threads, load {os.getloadavg()[0]:.1f}; glibc's allocator for Python, pudica's own for pudica")
print(f"{versions}, {subprocess.run([pudica, '--version'], capture_output=True, text=True).stdout.strip()}")
print(f"patch sensitivity of ResNet-20: {images} images x 64 patches x {draws} draws; ratios: NumPy's loop over pudica's whole program\n")
print(f"{'':<34}{'wall, s':>9}{'CPU, s':>9}{'wall':>9}{'CPU':>9}{'sensitivity':>21}{'peak, MiB':>11}")
nudge = ["--nudge", f"patch-noise:size=4,variance=1,draws={draws}"]
out, memory, whole, _ = run([sys.executable, f"{here}/loop.py", onnx, batch, images, draws, threads])
loop = json.loads(out)  # times of the loop alone: neither imports nor the choice of its batch
line(f"NumPy and onnxruntime, batch {loop['batch']}", loop["seconds"], loop["cpu"], loop["sensitivity"], loop["std_error"], memory)
sides = [("pudica, ONNX Runtime", onnx, ["--runtime", "ort"]), ("pudica, tract", onnx, ["--runtime", "tract"])]
sides += [("pudica, from the checkpoint", checkpoint, ["--architecture", "resnet20"])]
for name, model, options in sides:
    summary, memory, wall, cpu = measured(model, *nudge, *options)
    found = summary["results"][0]
    line(name, wall, cpu, found["value"], found["std_error"], memory)
print(f"\nNumPy: its loop alone; with imports and trying batches the program took {whole:.1f} s. Load at the end: {os.getloadavg()[0]:.1f}")
print(f"\npeak of memory, one pixel-noise per image, ONNX Runtime:")
for count in (few, many):
    _, memory, wall, _ = measured(onnx, "--runtime", "ort", "--nudge", "pixel-noise", sample=count)
    print(f"{int(count):>8,} images {memory:8.0f} MiB {wall:8.1f} s")
shutil.rmtree(scratch)
