"""Runs the scratchpad's kernels on the processor, a fiber for each thread, and compares them with loops in f64. Needs a C++ compiler, no GPU."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "crates/ensemble/src/gpu/kernels"
EMULATED = ROOT / "tests/kernels/emulated"
FILES = ["common", "scratchpad", "scratchpad_rows", "scratchpad_rows_backward", "scratchpad_attention", "scratchpad_attend",
         "scratchpad_attend_backward", "scratchpad_gradients"]


def without_instructions(source):
    """The source without the functions that are a GPU's instructions: cuda.hpp has its own."""
    out, at = "", 0
    for start in (found.start() for found in re.finditer(r"^__device__ __forceinline__ ", source, re.M)):
        line = source[start:source.index("\n", start) + 1]
        end = start + len(line) if line.rstrip().endswith("}") else source.index("\n}\n", start) + 3
        body = source[start:end]
        if "asm" in body or "__cvta" in body:
            out, at = out + source[at:start], end
    return out + source[at:]


def main():
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        print("skipped: there is no C++ compiler here, so the scratchpad's kernels were not run")
        return
    folder = ROOT / "target/emulated"
    folder.mkdir(parents=True, exist_ok=True)
    source = "".join(without_instructions((KERNELS / f"{name}.cu").read_text()) for name in FILES)
    source = source.replace('extern "C" ', "").replace("extern __shared__ __align__(128) unsigned char memory[];", "")
    (folder / "kernels.hpp").write_text('#include "cuda.hpp"\nnamespace kernels {\n' + source + "}\n")
    shape = ["-DD=32", "-DHEADS=2", "-DFF=32", "-DCONCAT=1", "-DNUMBER=float"]
    checks = ["-fsanitize=alignment,bounds", "-fno-sanitize-recover=all"]  # a GPU refuses what is not aligned, a processor does not
    subprocess.run([compiler, "-std=c++17", "-O1", "-w", *checks, *shape, f"-I{folder}", f"-I{EMULATED}", str(EMULATED / "check.cpp"),
                    str(EMULATED / "cuda.cpp"), "-o", str(folder / "check")], check=True)
    sys.exit(subprocess.run([str(folder / "check")]).returncode)


main()
