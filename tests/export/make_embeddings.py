"""Writes arrays of vectors whose tables are sorted by name, and prints the similarity of each image to the first.

make_embeddings.py FOLDER NAME...
"""

import csv
import json
import pathlib
import sys

import numpy as np

DIMS = 48
CASES = {
    "tiny": ("<f4", 1e-30, 0.0),
    "small": ("<f4", 1e-8, 0.0),
    "plain": ("<f4", 1.0, 0.0),
    "shifted": ("<f4", 1.0, 1000.0),
    "limit": ("<f4", 40_000.0, 0.0),
    "large": ("<f4", 1e36, 0.0),
    "double": ("<f8", 1e-200, 0.0),
    "half": ("<f2", 1.0, 0.0),
}

folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
expected = {}
for seed, (case, (dtype, scale, offset)) in enumerate(CASES.items()):
    random = np.random.default_rng(seed)
    # Values of very different sizes in each vector.
    vectors = random.normal(size=(len(names), DIMS)) * 10.0 ** random.uniform(-3, 1, size=DIMS)
    vectors = (vectors * scale + offset).astype(dtype)
    np.save(folder / f"{case}.npy", vectors)
    order = random.permutation(len(names))
    with open(folder / f"{case}.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["uri", "row"])
        table.writerows([names[at], at] for at in order)
    centered = vectors.astype(np.float64) / scale
    centered -= centered.mean(axis=0)
    centered /= np.linalg.norm(centered, axis=1, keepdims=True)
    expected[case] = dict(zip(names, (centered @ centered[0]).tolist()))
print(json.dumps(expected))
