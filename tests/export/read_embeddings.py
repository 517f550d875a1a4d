"""Reads exported embeddings of boxes with NumPy, and compares the box of the first row with all others."""

import csv
import json
import pathlib
import sys

import numpy as np

array = np.load(sys.argv[1])
with open(pathlib.Path(sys.argv[1]).with_suffix(".csv"), encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file, strict=True))
vectors = array.astype(np.float64)
vectors -= vectors.mean(axis=0)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
similarity = vectors @ vectors[0]
print(
    json.dumps(
        {
            "type": array.dtype.str,
            "shape": array.shape,
            "rows": rows,
            "nearest": [[rows[at]["uri"], int(rows[at]["box"]), similarity[at]] for at in np.argsort(-similarity)[1:4]],
        }
    )
)
