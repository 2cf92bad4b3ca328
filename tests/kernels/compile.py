"""Compiles the GPU kernels with NVRTC for several shapes, as `crates/ensemble/src/gpu/cuda.rs` does at start. Needs no GPU.

usage: compile.py LIBNVRTC
"""
import ctypes
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU = ROOT / "crates/ensemble/src/gpu"


def sources(constant):
    """The files that a constant of cuda.rs lists, in its order."""
    listed = re.search(rf"const {constant}: &\[&str\] = &\[(.*?)\];", (GPU / "cuda.rs").read_text(), re.S).group(1)
    return "".join((GPU / name).read_text() for name in re.findall(r'include_str!\("(.*?)"\)', listed))


def compiled(nvrtc, source, options):
    """None, or what the compiler says."""
    program = ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"pudica.cu", 0, None, None)
    assert made == 0, made
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    if nvrtc.nvrtcCompileProgram(program, len(options), words) == 0:
        return None
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode()


def main():
    nvrtc = ctypes.CDLL(sys.argv[1])
    plain, tensor = sources("SOURCES"), sources("TENSOR_SOURCES")
    # d, heads, ff, concat, number type, halves per factor where tensor cores are used
    shapes = [(128, 2, 128, 1, "float", 2), (128, 2, 128, 1, "float", 1), (128, 2, 128, 1, "double", 0),
              (4, 2, 4, 0, "float", 2), (32, 4, 64, 1, "float", 1)]
    failed = 0
    for d, heads, ff, concat, number, parts in shapes:
        on_tensor_cores = parts > 0 and d == 128 and ff == 128
        # Hopper has products of its own.
        for architecture in ("80", "90a") if on_tensor_cores else ("90",):
            options = [f"--gpu-architecture=compute_{architecture}", "--std=c++17", f"-DD={d}", f"-DHEADS={heads}", f"-DFF={ff}",
                       f"-DCONCAT={concat}", f"-DNUMBER={number}"] + ([f"-DPARTS={parts}"] if parts else [])
            problem = compiled(nvrtc, plain + (tensor if on_tensor_cores else ""), options)
            print(f"compute_{architecture}, d = {d}, ff = {ff}, {number}, {parts} halves: {'compiles' if problem is None else problem}")
            failed += problem is not None
    sys.exit(1 if failed else 0)


main()
