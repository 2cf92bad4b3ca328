"""python loop.py MODEL.onnx test_batch.bin IMAGES DRAWS THREADS: patch sensitivity as one would write it with NumPy and onnxruntime.

Noise N(0, 1) in units of the normalised image on each of the 64 patches of 4 x 4 pixels; how often the label changes. Prints JSON.
"""
import gzip, json, sys, time
import numpy as np
import onnxruntime as ort

model, data, images, draws, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
options = ort.SessionOptions()
options.intra_op_num_threads = threads
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name

read = (gzip.open if data.endswith(".gz") else open)(data, "rb").read()
records = np.frombuffer(read, np.uint8).reshape(-1, 3073)
chosen = np.sort(np.random.default_rng(0).choice(len(records), images, replace=False))
mean, std = (np.array(v, np.float32).reshape(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
pixels = (records[chosen, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255 - mean) / std

rng = np.random.default_rng(1)
patch = np.arange(64)
touched = np.empty((draws, 64, 3, 32, 32), np.float32)


def labels(batch, size):
    runs = [session.run(None, {name: batch[i : i + size]})[0].argmax(1) for i in range(0, len(batch), size)]
    return np.concatenate(runs)


def changed(image, before, size):
    touched[:] = image
    noise = rng.standard_normal((64, draws, 3, 4, 4), np.float32)
    touched.reshape(draws, 64, 3, 8, 4, 8, 4)[:, patch, :, patch // 8, :, patch % 8, :] += noise
    return (labels(touched.reshape(-1, 3, 32, 32), size) != before).mean()


def timed(size, count):
    start = time.perf_counter()
    for image in pixels[:count]:
        changed(image, 0, size)
    return time.perf_counter() - start


timed(64, 2)  # warm
size = min((64, 128, 64 * draws), key=lambda size: timed(size, 4))  # the batch that is fastest here
start, start_cpu = time.perf_counter(), time.process_time()
before = labels(pixels, size)
sensitivity = [changed(image, label, size) for image, label in zip(pixels, before)]
seconds = time.perf_counter() - start
print(json.dumps({
    "seconds": seconds, "cpu": time.process_time() - start_cpu, "sensitivity": float(np.mean(sensitivity)), "batch": size,
    "std_error": float(np.std(sensitivity, ddof=1) / np.sqrt(images)),
}))
