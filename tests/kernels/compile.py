"""Compiles the GPU kernels with NVRTC for several shapes, as `crates/ensemble/src/gpu/cuda/mod.rs` does at start. Needs no GPU.

usage: compile.py LIBNVRTC
"""
import ctypes
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU = ROOT / "crates/ensemble/src/gpu"


def programs(constant):
    """The programs that a list of programs.rs names: their sources."""
    listed = re.search(rf"static {constant}: &\[Program\] =\s*&\[(.*?)\];", (GPU / "programs.rs").read_text(), re.S).group(1)
    files = [re.findall(r'"(\w+)"', names) for names in re.findall(r"program!\(\s*\[(.*?)\]", listed, re.S)]
    return ["".join((GPU / f"kernels/{name}.cu").read_text() for name in names) for names in files]


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
    kinds = ("", "NARROW_", "TENSOR_", "COMPACT_", "HOPPER_", "HALVES_", "SCRATCHPAD_")
    plain, narrow, tensor, compact, hopper, halves, scratchpad = (programs(f"{kind}PROGRAMS") for kind in kinds)
    counted = [len(kind) for kind in (plain, narrow, tensor, compact, hopper, halves, scratchpad)]
    assert counted == [5, 1, 4, 2, 1, 3, 4], "programs.rs is not read as it is written"
    # d, heads, ff, concat, number type, halves per factor where tensor cores are used
    shapes = [(128, 2, 128, 1, "float", 2), (128, 2, 128, 1, "float", 1), (128, 1, 128, 1, "float", 1), (128, 4, 128, 1, "float", 1),
              (128, 2, 128, 1, "double", 0),
              (4, 2, 4, 0, "float", 2), (32, 4, 64, 1, "float", 1),
              (32, 2, 32, 1, "float", 1), (32, 2, 32, 0, "float", 1)]  # the last two are the scratchpad's
    failed = 0
    for d, heads, ff, concat, number, parts in shapes:
        is_scratchpad = (d, heads, ff) == (32, 2, 32)
        is_wide = parts > 0 and d == 128 and ff == 128
        # Hopper has products of its own; 7.5 is the least that NVRTC compiles for, without kernels on tensor cores.
        for architecture in ("80", "90a") if is_scratchpad else ("75", "80", "90a") if is_wide else ("75", "90"):
            on_tensor_cores = is_wide and architecture != "75"
            options = [f"--gpu-architecture=sm_{architecture}", "--std=c++17", f"-DD={d}", f"-DHEADS={heads}", f"-DFF={ff}",
                       f"-DCONCAT={concat}", f"-DNUMBER={number}"] + ([f"-DPARTS={parts}"] if parts else [])
            asked = plain + (narrow if d * heads <= 16 else []) + (tensor if on_tensor_cores else [])
            asked += compact if on_tensor_cores and parts == 1 and heads <= 2 else []
            asked += hopper if on_tensor_cores and architecture == "90a" and heads == 2 else []
            asked += halves if on_tensor_cores and architecture == "90a" and parts == 1 and heads <= 2 else []
            asked += scratchpad if is_scratchpad else []
            problems = [problem for program in asked if (problem := compiled(nvrtc, program, options)) is not None]
            print(f"sm_{architecture}, d = {d}, ff = {ff}, {number}, {parts} halves: {len(asked)} programs", *problems or ["compile"])
            failed += len(problems)
    sys.exit(1 if failed else 0)


main()
