"""Runs the GPU's kernels on the processor, a fiber for each thread. Needs a C++ compiler, no GPU.

    emulate.py                   compares the scratchpad's kernels with loops in f64
    emulate.py --engine [TEST]   runs tests of the engine that launches kernels, on an emulated CUDA: of the test TEST of crates/ensemble, else all of
                                 gpu_scratchpad and gpu. They leave out what is long: see PUDICA_LONGEST and PUDICA_STRINGS there

The emulated GPU is a Hopper; with PUDICA_EMULATED=86 in the environment it has compute capability 8.6, and so on. After --engine the program itself runs on it, too:
    LD_LIBRARY_PATH=target/emulated pudica run hahn/length-scaling --device cuda --dtype tf32 n=8 seed=0 train.batch=8 train.steps=20
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "crates/ensemble/src/gpu/kernels"
EMULATED = ROOT / "tests/kernels/emulated"
sys.path.append(str(EMULATED))
from translate import COMPILER, FLAGS, translated  # noqa: E402

FILES = ["common", "instructions", "scratchpad", "scratchpad_rows", "scratchpad_gradients", "scratchpad_rows_backward", "scratchpad_attention",
         "scratchpad_attend", "scratchpad_attend_backward"]
SHAPE = ["-DD=32", "-DHEADS=2", "-DFF=32", "-DCONCAT=1", "-DNUMBER=float"]
CHECKS = ["-fsanitize=alignment,bounds", "-fno-sanitize-recover=all"]  # a GPU refuses what is not aligned, a processor does not


def build(folder, name, sources, options):
    subprocess.run([COMPILER, *FLAGS, *options, f"-I{folder}", *(str(EMULATED / source) for source in sources), "-o", str(folder / name)], check=True)


def check(folder):
    source = "".join(translated((KERNELS / f"{name}.cu").read_text()) for name in FILES).replace('extern "C" ', "")
    (folder / "kernels.hpp").write_text(f'#include "cuda.hpp"\nnamespace kernels {{\n{source}}}\n')
    build(folder, "check", ["check.cpp", "cuda.cpp"], ["-O1", *CHECKS, *SHAPE])
    return subprocess.run([str(folder / "check")]).returncode


def engine(folder, tests):
    build(folder, "libcuda.so", ["cuda.cpp", "driver.cpp"], ["-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so", f'-DTRANSLATE_PY="{EMULATED / "translate.py"}"'])
    for other in ("libnvrtc.so", "libcublas.so"):
        (folder / other).unlink(missing_ok=True)
        (folder / other).symlink_to("libcuda.so")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {"PUDICA_LONGEST": "5", "PUDICA_STRINGS": "8"} | os.environ | {"LD_LIBRARY_PATH": path}
    command = ["cargo", "test", "--workspace"]
    subprocess.run([*command, *(word for test in tests for word in ("--test", test)), "--no-run"], cwd=ROOT, check=True)
    # The file, which of its tests, and what else is in the environment. With two lanes, those in which there are two.
    runs = [(test, "", {}) for test in tests] + [("gpu", "tensor_cores", {"PUDICA_TWO_LANES": "1"})] * ("gpu" in tests)
    # Side by side, each on one core.
    started = [subprocess.Popen([*command, "--quiet", "--test", test, "--", "--test-threads", "1", only], cwd=ROOT, env=environment | more, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for test, only, more in runs]
    for (test, only, more), process in zip(runs, started):
        print(f"{test} {only} {more or ''}".strip() + ":", process.communicate()[0].strip(), sep="\n")
    return int(any(process.returncode for process in started))


def main():
    if COMPILER is None:
        print("skipped: there is no C++ compiler here, so the GPU's kernels were not run")
        return
    folder = ROOT / "target/emulated"
    folder.mkdir(parents=True, exist_ok=True)
    sys.exit(engine(folder, sys.argv[2:] or ["gpu_scratchpad", "gpu"]) if sys.argv[1:2] == ["--engine"] else check(folder))


main()
