"""Runs the scratchpad's kernels on the processor, a fiber for each thread. Needs a C++ compiler, no GPU.

    emulate.py             compares them with loops in f64
    emulate.py --engine    runs the tests of the engine that launches them (crates/ensemble/tests/gpu_scratchpad.rs), on an emulated CUDA; of strings
                           of up to 5 bits, or PUDICA_LONGEST (16 takes minutes)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "crates/ensemble/src/gpu/kernels"
EMULATED = ROOT / "tests/kernels/emulated"
FILES = ["common", "scratchpad", "scratchpad_rows", "scratchpad_gradients", "scratchpad_rows_backward", "scratchpad_attention", "scratchpad_attend",
         "scratchpad_attend_backward"]
# What the engine launches beside.
OTHERS = ["draw", "layer_norm", "norm", "optimiser"]
SHAPE = ["-DD=32", "-DHEADS=2", "-DFF=32", "-DNUMBER=float"]
CHECKS = ["-fsanitize=alignment,bounds", "-fno-sanitize-recover=all"]  # a GPU refuses what is not aligned, a processor does not


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


def kernels(files, space):
    """The kernels of some files as C++, in a namespace."""
    source = "".join(without_instructions((KERNELS / f"{name}.cu").read_text()) for name in files)
    source = source.replace('extern "C" ', "").replace("extern __shared__ __align__(128) unsigned char memory[];", "")
    return f"namespace {space} {{\n{source}}}\n"


def table(source, space):
    """What calls the kernels of a namespace by name."""
    definition = re.compile(r"^__global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\((.*?)\)\s*\{", re.S | re.M)
    entries = ""
    for name, parameters in definition.findall(source):
        types = [re.sub(r"\w+$", "", " ".join(one.replace("__restrict__", "").split())) for one in parameters.split(",")]
        call = ", ".join(f"*({kind}*)p[{index}]" for index, kind in enumerate(types))
        sizes = ", ".join(f"sizeof({kind})" for kind in types)
        entries += f'    {{"{name}", {{[](void** p) {{ {name}({call}); }}, {{{sizes}}}}}}},\n'
    return f"namespace {space} {{\nstatic const std::map<std::string, Kernel> table = {{\n{entries}}};\n}}\n"


def build(compiler, folder, name, sources, options):
    command = [compiler, "-std=c++17", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE", *options, f"-I{folder}", f"-I{EMULATED}", *map(str, sources), "-o", str(folder / name)]
    subprocess.run(command, check=True)


def check(compiler, folder):
    (folder / "kernels.hpp").write_text('#include "cuda.hpp"\n' + kernels(FILES, "kernels"))
    build(compiler, folder, "check", [EMULATED / "check.cpp", EMULATED / "cuda.cpp"], ["-O1", "-DCONCAT=1", *CHECKS, *SHAPE])
    return subprocess.run([str(folder / "check")]).returncode


def engine(compiler, folder):
    names = []
    for space, concat in (("concat", 1), ("add", 0)):
        source = kernels(FILES + OTHERS, space)
        unit = folder / f"{space}.cpp"
        find = f"const Kernel* find_{space}(const char* name) {{ auto at = {space}::table.find(name); return at == {space}::table.end() ? nullptr : &at->second; }}\n"
        unit.write_text(f'#define CONCAT {concat}\n#include "cuda.hpp"\n#include "driver.hpp"\n#include <map>\n#include <string>\n' + source + table(source, space) + find)
        names.append(unit)
    find = folder / "find.cpp"
    find.write_text('''#include "driver.hpp"
const Kernel* find_concat(const char* name);
const Kernel* find_add(const char* name);
const Kernel* find_kernel(const char* name, bool concat) {
    static const Kernel none = {};
    const Kernel* found = concat ? find_concat(name) : find_add(name);
    return found ? found : &none;
}
''')
    build(compiler, folder, "libcuda.so", [*names, find, EMULATED / "cuda.cpp", EMULATED / "driver.cpp"], ["-O2", "-shared", "-fPIC", *SHAPE])
    for other in ("libnvrtc.so", "libcublas.so"):
        (folder / other).unlink(missing_ok=True)
        (folder / other).symlink_to("libcuda.so")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    command = ["cargo", "test", "-p", "pudica-ensemble", "--test", "gpu_scratchpad", "--", "--test-threads", "1"]
    environment = {"PUDICA_LONGEST": "5"} | os.environ | {"LD_LIBRARY_PATH": path}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def main():
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        print("skipped: there is no C++ compiler here, so the scratchpad's kernels were not run")
        return
    folder = ROOT / "target/emulated"
    folder.mkdir(parents=True, exist_ok=True)
    sys.exit(engine(compiler, folder) if sys.argv[1:] == ["--engine"] else check(compiler, folder))


main()
