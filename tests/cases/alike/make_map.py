"""How well UMAP keeps neighborhoods: the digits of scikit-learn, mapped by umap-learn.

usage: python make_map.py        (pip install umap-learn==0.5.12 scikit-learn==1.9.1)
Writes digits.u8 (1000 rows of 64 bytes) and map.json: the trustworthiness of the first two principal components and of
maps by umap-learn with several seeds, from the same start, by the cosine distance of the centered rows. The row itself
is one of umap-learn's neighbors, so its 16 are 15 others.
"""

import json
import pathlib

import numpy as np
import umap
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

HERE = pathlib.Path(__file__).parent
ROWS, NEIGHBORS, SEEDS = 1000, 15, 5

digits = load_digits().data[:ROWS]
(HERE / "digits.u8").write_bytes(digits.astype(np.uint8).tobytes())
centered = digits - digits.mean(axis=0)
start = PCA(2).fit_transform(centered)


def trust(positions):
    return trustworthiness(centered, positions, n_neighbors=NEIGHBORS, metric="cosine")


maps = [
    umap.UMAP(n_neighbors=NEIGHBORS + 1, metric="cosine", init=start, random_state=seed).fit_transform(centered)
    for seed in range(SEEDS)
]
(HERE / "map.json").write_text(
    json.dumps({"rows": ROWS, "pca": round(trust(start), 4), "umap": [round(trust(positions), 4) for positions in maps]})
    + "\n"
)
