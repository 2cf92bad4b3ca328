"""Small ONNX files and what ONNX Runtime answers to them, for crates/model/tests/onnx.rs.

    python3 -m venv /tmp/onnxpy && /tmp/onnxpy/bin/pip install onnx onnxruntime numpy
    ORT_DISABLE_TELEMETRY=1 /tmp/onnxpy/bin/python tests/golden/onnx/make.py

Writes *.onnx and cases.json beside this script. Inputs are kept as pudica has them (images [channels, height, width] from 0 to 1); `feed` is what the
graph is given for them, so the answers do not depend on any code of pudica's.
"""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(0)
cases = []

TYPES = {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "u8": TensorProto.UINT8,
         "i8": TensorProto.INT8, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "bool": TensorProto.BOOL}


def weights(name, shape, dtype=np.float32, scale=None):
    scale = scale or 1.0 / np.sqrt(max(1, int(np.prod(shape[1:]))))
    return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(dtype), name)


def whole(name, values):
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def constant(tensor):
    """The same tensor as a node instead of an initializer."""
    return helper.make_node("Constant", [], [tensor.name], value=tensor)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def write(file, nodes, inputs, outputs, initializer, opset=17, **model):
    ports = lambda named: [helper.make_tensor_value_info(name, TYPES[kind], shape) for name, kind, shape in named]
    graph = helper.make_graph(nodes, file, ports(inputs), ports(outputs), initializer)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9, producer_name="pudica", **model)
    onnx.checker.check_model(made)
    onnx.save(made, HERE / f"{file}.onnx")
    return made


def case(file, kind, inputs, feed, output=None, **more):
    """Asks ONNX Runtime; `inputs` are pudica's, `feed` the graph's."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(HERE / f"{file}.onnx", options, providers=["CPUExecutionProvider"])
    output = output or session.get_outputs()[0].name
    fixed = session.get_inputs()[0].shape[0]
    if isinstance(fixed, int) and fixed != len(inputs):
        parts = [{name: value[at : at + fixed] for name, value in feed.items()} for at in range(0, len(inputs), fixed)]
    else:
        parts = [feed]
    answers = np.concatenate([session.run([output], part)[0].reshape(len(next(iter(part.values()))), -1) for part in parts])
    numbers = lambda array: [round(float(value), 7) for value in np.asarray(array, dtype=np.float64).ravel()]
    cases.append({"file": f"{file}.onnx", "kind": kind, "shape": list(np.shape(inputs)[1:]),
                  "inputs": [numbers(one) for one in inputs], "output": output, "classes": answers.shape[1], "scores": numbers(answers), **more})


def images(count, *shape):
    return rng.random((count, *shape), dtype=np.float32).round(4)


# A multilayer perceptron on rows of a table.
write("mlp", [node("Gemm", "x w1 b1", "h"), node("Relu", "h", "r"), node("MatMul", "r w2", "m"), node("Add", "m b2", "y")],
      [("x", "f32", ["N", 6])], [("y", "f32", ["N", 3])],
      [weights("w1", (6, 16)), weights("b1", (16,)), weights("w2", (16, 3)), weights("b2", (3,))])
rows = rng.standard_normal((11, 6)).astype(np.float32).round(4)
case("mlp", "rows", rows, {"x": rows}, weights=["w1", "b1", "w2", "b2"])

# A linear model of images, for closed forms: score = <w, x> + b, twice (two classes).
write("linear", [node("Flatten", "x", "f"), node("Gemm", "f w b", "y", transB=1)],
      [("x", "f32", ["N", 3, 8, 8])], [("y", "f32", ["N", 2])], [weights("w", (2, 192)), weights("b", (2,))])
pictures = images(5, 3, 8, 8)
case("linear", "images", pictures, {"x": pictures}, weights=["w", "b"])

# A convolutional network, batch of any size, with batch normalisation; its weights as constants instead of initializers in a second file.
layers = [node("Conv", "x k1 c1", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("BatchNormalization", "a scale shift mean variance", "n"),
          node("Relu", "n", "r"), node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
          node("Conv", "p k2 c2", "d", kernel_shape=[3, 3]), node("Relu", "d", "e"), node("GlobalAveragePool", "e", "g"),
          node("Flatten", "g", "f"), node("Gemm", "f w b", "y", transB=1)]
tensors = [weights("k1", (8, 3, 3, 3)), weights("c1", (8,)), weights("scale", (8,)), weights("shift", (8,)), weights("mean", (8,)),
           numpy_helper.from_array(rng.random(8, dtype=np.float32) + 0.5, "variance"),
           weights("k2", (12, 8, 3, 3)), weights("c2", (12,)), weights("w", (10, 12)), weights("b", (10,))]
ports = [("x", "f32", ["N", 3, 16, 16])], [("y", "f32", ["N", 10])]
write("cnn", layers, *ports, tensors)
write("constants", [constant(tensor) for tensor in tensors] + layers, *ports, [], opset=11)
pictures = images(3, 3, 16, 16)
trained = ["k1", "c1", "scale", "shift", "k2", "c2", "w", "b"]
case("cnn", "images", pictures, {"x": pictures}, weights=trained)
mean, std = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
case("cnn", "images", pictures, {"x": (pictures - mean[:, None, None]) / std[:, None, None]}, normalise="imagenet")
case("constants", "images", pictures, {"x": pictures}, weights=trained)

# Patches with a token for the class, positions, a mask (which is no weight) and attention without weights of its own.
mask = numpy_helper.from_array(np.triu(np.full((5, 5), -1e9, np.float32), 1), "mask")
write("patches", [node("Conv", "x k c", "p", kernel_shape=[4, 4], strides=[4, 4]), node("Reshape", "p flat", "f"),
                  node("Transpose", "f", "t", perm=[0, 2, 1]), node("Shape", "x", "s"), node("Gather", "s zero", "n"),
                  node("Concat", "n rest", "e", axis=0), node("Expand", "cls e", "first"), node("Concat", "first t", "h", axis=1),
                  node("Add", "h positions", "a"), node("Transpose", "a", "at", perm=[0, 2, 1]), node("MatMul", "a at", "q"),
                  node("Add", "q mask", "m"), node("Softmax", "m", "w", axis=-1), node("MatMul", "w a", "v"),
                  node("LayerNormalization", "v scale shift", "l"), node("ReduceMean", "l", "r", axes=[1], keepdims=0), node("Gemm", "r g b", "y")],
      [("x", "f32", ["N", 1, 8, 8])], [("y", "f32", ["N", 3])],
      [weights("k", (6, 1, 4, 4)), weights("c", (6,)), whole("flat", [0, 6, 4]), whole("zero", [0]), whole("rest", [1, 6]),
       weights("cls", (1, 1, 6)), weights("positions", (1, 5, 6)), mask, weights("scale", (6,)), weights("shift", (6,)),
       weights("g", (6, 3)), weights("b", (3,))])
pictures = images(4, 1, 8, 8)
case("patches", "images", pictures, {"x": pictures}, weights=["k", "c", "cls", "positions", "scale", "shift", "g", "b"])

# Images of any size, and a final [N, C, 1, 1].
write("any-size", [node("Conv", "x k c", "a", kernel_shape=[3, 3]), node("Relu", "a", "r"), node("GlobalAveragePool", "r", "g"),
                   node("Conv", "g w b", "y", kernel_shape=[1, 1])],
      [("x", "f32", ["N", 1, "H", "W"])], [("y", "f32", ["N", 4, 1, 1])],
      [weights("k", (6, 1, 3, 3)), weights("c", (6,)), weights("w", (4, 6, 1, 1)), weights("b", (4,))])
for side in (9, 12):
    pictures = images(3, 1, side, side)
    case("any-size", "images", pictures, {"x": pictures})

# Bytes, height x width x channels.
write("bytes-nhwc", [node("Cast", "x", "f", to=TensorProto.FLOAT), node("Transpose", "f", "t", perm=[0, 3, 1, 2]),
                     node("Div", "t s", "d"), node("Conv", "d k c", "a", kernel_shape=[3, 3], strides=[2, 2]), node("Relu", "a", "r"),
                     node("Flatten", "r", "l"), node("Gemm", "l w b", "y")],
      [("x", "u8", ["N", 10, 10, 3])], [("y", "f32", ["N", 5])],
      [numpy_helper.from_array(np.float32(255), "s"), weights("k", (4, 3, 3, 3)), weights("c", (4,)), weights("w", (64, 5)), weights("b", (5,))])
pictures = images(4, 3, 10, 10)
rounded = np.floor(np.float32(255) * pictures + np.float32(0.5)).astype(np.uint8)  # halves up, which np.round does not
case("bytes-nhwc", "images", pictures, {"x": rounded.transpose(0, 2, 3, 1)})

# Halves.
write("half", [node("Gemm", "x w1 b1", "h"), node("Relu", "h", "r"), node("Gemm", "r w2 b2", "y")],
      [("x", "f16", ["N", 6])], [("y", "f16", ["N", 3])],
      [weights("w1", (6, 8), np.float16), weights("b1", (8,), np.float16), weights("w2", (8, 3), np.float16), weights("b2", (3,), np.float16)])
rows = rng.standard_normal((4, 6)).astype(np.float16)
case("half", "rows", rows, {"x": rows}, within=4e-3, weights=["w1", "b1", "w2", "b2"])

# Doubles, one output, softmax's little sister.
write("sigmoid", [node("Gemm", "x w b", "h"), node("Sigmoid", "h", "y")], [("x", "f64", ["N", 5])], [("y", "f64", ["N", 1])],
      [weights("w", (5, 1), np.float64), weights("b", (1,), np.float64)])
rows = rng.standard_normal((6, 5)).round(4)
case("sigmoid", "rows", rows, {"x": rows}, outputs="probabilities")

# Tokens: embedding, mean over those that the mask shows, linear.
pool = [node("Gather", "table input_ids", "e"), node("Cast", "attention_mask", "m", to=TensorProto.FLOAT), node("Unsqueeze", "m last", "u"),
        node("Mul", "e u", "s"), node("ReduceSum", "s middle", "t", keepdims=0), node("ReduceSum", "m middle", "c", keepdims=1),
        node("Div", "t c", "v"), node("Gemm", "v w b", "logits")]
tensors = [weights("table", (20, 8)), whole("last", [-1]), whole("middle", [1]), weights("w", (8, 2)), weights("b", (2,))]
masked = [("input_ids", "i64", ["N", "T"]), ("attention_mask", "i64", ["N", "T"])]
write("tokens", pool, masked, [("logits", "f32", ["N", 2])], tensors)
write("tokens-fixed", pool, [(name, kind, ["N", 7]) for name, kind, _ in masked], [("logits", "f32", ["N", 2])], tensors)
for length in (5, 7):
    ids = rng.integers(0, 20, (6, length))
    case("tokens", "tokens", ids, {"input_ids": ids, "attention_mask": np.ones_like(ids)}, vocabulary=20, weights=["table", "w", "b"])
ids = rng.integers(0, 20, (3, 5))
filled, shown = np.pad(ids, ((0, 0), (0, 2))), np.pad(np.ones_like(ids), ((0, 0), (0, 2)))
case("tokens-fixed", "tokens", ids, {"input_ids": filled, "attention_mask": shown}, vocabulary=20)
# The same without a mask, and i32.
write("tokens-bare", [node("Gather", "table ids", "e"), node("ReduceMean", "e", "v", axes=[1], keepdims=0), node("Gemm", "v w b", "y")],
      [("ids", "i32", ["N", 7])], [("y", "f32", ["N", 2])], [tensors[0], tensors[3], tensors[4]])
ids = rng.integers(0, 20, (3, 7)).astype(np.int32)
case("tokens-bare", "tokens", ids, {"ids": ids}, vocabulary=20)

# A batch of one and of three, fixed.
for batch in (1, 3):
    write(f"batch-{batch}", [node("Reshape", "x s", "f"), node("MatMul", "f w", "y")], [("x", "f32", [batch, 1, 4, 4])],
          [("y", "f32", [batch, 3])], [whole("s", [batch, 16]), weights("w", (16, 3))])
    pictures = images(6, 1, 4, 4)
    case(f"batch-{batch}", "images", pictures, {"x": pictures})

# Softmax, and two outputs of which one must be chosen; the other has an op that nobody knows.
write("softmax", [node("Gemm", "x w b", "h"), node("Softmax", "h", "p", axis=-1)], [("x", "f32", ["N", 4])], [("p", "f32", ["N", 3])],
      [weights("w", (4, 3)), weights("b", (3,))])
rows = rng.standard_normal((5, 4)).astype(np.float32).round(4)
case("softmax", "rows", rows, {"x": rows}, outputs="probabilities")
write("two-outputs", [node("Gemm", "x w b", "logits"), node("Exp", "logits", "e"), node("ReduceSum", "e one", "z"), node("Div", "e z", "q"),
                      node("ArgMax", "logits", "label", axis=1, keepdims=0)],
      [("x", "f32", ["N", 4])], [("logits", "f32", ["N", 3]), ("q", "f32", ["N", 3]), ("label", "i64", ["N"])],
      [weights("w", (4, 3)), weights("b", (3,)), whole("one", [1])])
case("two-outputs", "rows", rows, {"x": rows}, output="logits")
case("two-outputs", "rows", rows, {"x": rows}, output="q", outputs="probabilities")

# Parity of 8 bits, exactly: h_i = relu(sum - i) for i = 0..7, y = h_0 - 2 h_1 + 2 h_2 - ..., which goes up and down between 0 and 1; minus a half.
signs = np.array([1.0] + [2.0 * (-1) ** i for i in range(1, 8)], np.float32)
parity = [numpy_helper.from_array(np.ones((8, 8), np.float32), "w1"), numpy_helper.from_array(-np.arange(8, dtype=np.float32), "b1"),
          numpy_helper.from_array(signs[:, None], "w2"), numpy_helper.from_array(np.array([-0.5], np.float32), "b2")]
write("parity", [node("Gemm", "bits w1 b1", "h"), node("Relu", "h", "r"), node("Gemm", "r w2 b2", "y")],
      [("bits", "f32", ["N", 8])], [("y", "f32", ["N", 1])], parity)
bits = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.float32)
case("parity", "bits", bits, {"bits": bits}, weights=["w1", "b1", "w2"])
assert all((score > 0) == (row.sum() % 2 == 1) for score, row in zip(cases[-1]["scores"], bits))

# A row without an axis for the batch.
write("no-batch", [node("MatMul", "x w", "y")], [("x", "f32", [4])], [("y", "f32", [3])], [weights("w", (4, 3))])
session = onnxruntime.InferenceSession(HERE / "no-batch.onnx", providers=["CPUExecutionProvider"])
answers = np.concatenate([session.run(None, {"x": row})[0] for row in rows])
cases.append({"file": "no-batch.onnx", "kind": "rows", "shape": [4], "inputs": rows.tolist(), "output": "y", "classes": 3,
              "scores": [round(float(value), 7) for value in answers]})

# What tract gets wrong, so that it must be left to ONNX Runtime: an LSTM that reads backwards.
write("reverse-lstm", [node("Transpose", "x", "t", perm=[1, 0, 2]), node("LSTM", "t W R B", "o last", hidden_size=5, direction="reverse"),
                       node("Squeeze", "last zero", "h"), node("Gemm", "h w b", "y")],
      [("x", "f32", ["N", 6, 4])], [("y", "f32", ["N", 2])],
      [weights("W", (1, 20, 4)), weights("R", (1, 20, 5)), weights("B", (1, 40)), whole("zero", [0]), weights("w", (5, 2)), weights("b", (2,))])
sequences = images(4, 1, 6, 4)
case("reverse-lstm", "images", sequences, {"x": sequences[:, 0]}, ort_only=True)

# An answer that depends on the others of the batch, as batch normalisation does in training.
write("mixed", [node("MatMul", "x w", "h"), node("ReduceMean", "h", "m", axes=[0], keepdims=1), node("Sub", "h m", "y")],
      [("x", "f32", ["N", 4])], [("y", "f32", ["N", 3])], [weights("w", (4, 3))])

# Weights in a file of their own.
made = onnx.load(HERE / "mlp.onnx")
(HERE / "external.onnx.data").unlink(missing_ok=True)  # it would be appended to
onnx.save_model(made, HERE / "external.onnx", save_as_external_data=True, all_tensors_to_one_file=True, location="external.onnx.data", size_threshold=0)
rows = rng.standard_normal((3, 6)).astype(np.float32).round(4)
case("external", "rows", rows, {"x": rows}, weights=["w1", "b1", "w2", "b2"])

(HERE / "external.onnx.data").chmod(0o644)
(HERE / "cases.json").write_text(json.dumps(cases, separators=(",", ":")).replace('{"file"', '\n{"file"') + "\n")
print(len(cases), "cases", sum(path.stat().st_size for path in HERE.iterdir()), "bytes")
