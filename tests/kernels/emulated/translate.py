"""What NVRTC does, for a processor: kernels become a library of C++, in which the emulated driver finds them by name.

    translate.py SOURCE LIBRARY OPTION...    with the options that NVRTC gets
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMPILER = shutil.which("g++") or shutil.which("c++")
FLAGS = ["-std=c++17", "-w", "-march=native", "-ffp-contract=off", "-U_FORTIFY_SOURCE", f"-I{HERE}"]


def translated(source):
    """The source with its shared memory where the emulated GPU has it."""
    return re.sub(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];", r"\1* const \2 = (\1*)dynamic_memory;", source)


def definitions(options):
    """What is defined for the compiler: the shape, and the architecture."""
    number, own = re.search(r"--gpu-architecture=sm_(\d+)(a?)", " ".join(options)).groups()
    architecture = [f"-D__CUDA_ARCH__={number}0"] + ([f"-D__CUDA_ARCH_FEAT_SM{number}_ALL"] if own else [])
    return [one for one in options if one.startswith("-D")] + architecture


def main():
    source, library, options = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    newest = max(file.stat().st_mtime for file in HERE.iterdir())
    if library.exists() and library.stat().st_mtime > newest:
        return
    # Without its macros, so that kernels are seen by the names they get.
    source.write_text(translated(source.read_text()))
    plain = subprocess.run([COMPILER, "-E", "-P", "-DEMULATED", *definitions(options), "-x", "c++", str(source)], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"__global__ void\s[^{;]*?(\w+)\(([^(){;]*)\)\s*\{", plain)
    entries = "".join(f'    {{"{name}", Called<{name}>::kernel()}},\n' for name, _ in names)
    unit = source.with_suffix(".cpp")
    unit.write_text(f"""#include <map>
#include <string>
#include "driver.hpp"
{plain}
extern "C" const Kernel* find_kernel(const char* name) {{
    static const std::map<std::string, Kernel> table = {{
{entries}    }};
    auto at = table.find(name);
    return at == table.end() ? nullptr : &at->second;
}}
""")
    made = library.with_suffix(f".{os.getpid()}")
    subprocess.run([COMPILER, *FLAGS, "-O1", "-shared", "-fPIC", "-Wl,-Bsymbolic", str(unit), "-o", str(made), str(library.parent / "libcuda.so"),
                    f"-Wl,-rpath,{library.parent}"], check=True)
    made.rename(library)


if __name__ == "__main__":
    main()
