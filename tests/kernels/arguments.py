"""Do launches give kernels the arguments of their definitions? CUDA does not ask: a number in a pointer's place is a crash or a wrong result.

Reads the definitions in crates/ensemble/src/gpu/kernels and the launches in the Rust files beside it, as far as these list their arguments."""
import pathlib
import re
import sys

GPU = pathlib.Path(__file__).resolve().parents[2] / "crates/ensemble/src/gpu"
LEAST = 50  # launches that are read so; fewer mean that this script no longer reads what is written


def kind_of_parameter(text):
    return "pointer" if "*" in text else next(kind for kind in ("u64", "u32", "int", "double", "float") if kind in text).replace("u32", "int")


def kernels():
    """{name: the kinds of its parameters}"""
    definition = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\((.*?)\)\s*\{', re.S)
    return {name: [kind_of_parameter(one) for one in parameters.split(",")]
            for file in GPU.glob("kernels/*.cu") for name, parameters in definition.findall(file.read_text())}


def kind_of_argument(text):
    """What an argument of a launch is; None where its name does not tell."""
    known = {"pointer(": "pointer", "pointer_if(": "pointer", "long(": "u64", "Arg::Long(": "u64", "x.norm()": "u64", "int(": "int",
             "Arg::Double(": "double", "Arg::Float(": "float", "self.share()": "float"}
    text = re.sub(r"^(?:\w+::)*(?=long\(|int\(|pointer)", "", text.strip())
    return next((kind for start, kind in known.items() if text.startswith(start)), None)


def closed(text, start):
    """Where the bracket that is open at `start` closes."""
    depth, at = 1, start
    while depth:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        at += 1
    return at - 1


def parts(text):
    """What commas outside brackets divide."""
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append(text[begin:at])
            begin = at + 1
    return [part.strip() for part in found + [text[begin:]] if part.strip()]


def launches():
    """(file, kernel, kinds of its arguments) of every launch that lists them."""
    for file in GPU.rglob("*.rs"):
        text = file.read_text()
        for found in re.finditer(r'(\w+)\.launch\(\s*"(\w+)",', text):
            listed = parts(text[found.end():closed(text, found.end())])[-1].lstrip("&")
            if not listed.startswith("["):
                continue
            kinds = [kind_of_argument(one) for one in parts(listed[1:-1])]
            # Over rows of scratchpads, the number of rows and that of tiles end every list.
            kinds += ["u64", "u64"] if found.group(1) == "self" else []
            if None not in kinds:
                yield file.name, found.group(2), kinds


def main():
    defined, read, wrong = kernels(), 0, 0
    for file, kernel, kinds in launches():
        read += 1
        if defined.get(kernel) != kinds:
            wrong += 1
            print(f"{file} launches {kernel} with {kinds}, it is defined with {defined.get(kernel)}")
    print(f"{read} launches read, {wrong} with other arguments than the kernel has")
    if read < LEAST:
        print(f"there should be {LEAST} or more")
    sys.exit(1 if wrong or read < LEAST else 0)


main()
