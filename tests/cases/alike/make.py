"""Vectors like those of a network (mostly zeros and small positive numbers), and their similarity by scikit-learn.

usage: python make.py        (pip install numpy==2.4.6 scikit-learn==1.9.1)
Writes vectors.f16 (300 rows of 44 little-endian 16-bit floats) and expected.json: for the first rows as queries, the
cosine similarity of every row after the mean of all rows was subtracted, in 64-bit floats; and components.json: the
first principal components, their variances, and the first row in their coordinates.
"""

import json
import pathlib

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity

HERE = pathlib.Path(__file__).parent
ROWS, DIMS, QUERIES, COMPONENTS = 300, 44, 3, 5

random = np.random.default_rng(7)
groups = random.normal(size=(10, DIMS))
vectors = np.maximum(groups[random.integers(10, size=ROWS)] + random.normal(scale=0.7, size=(ROWS, DIMS)) + 0.5, 0)
vectors[:, 3] += 40  # A large value that all have: subtracting the mean is what makes rows differ.
vectors[:, 5] = 0
vectors[7] = vectors[0]
vectors = vectors.astype(np.float16)
(HERE / "vectors.f16").write_bytes(vectors.astype("<f2").tobytes())
exact = vectors.astype(np.float64)
centered = exact - exact.mean(axis=0)
similarities = cosine_similarity(centered[:QUERIES], centered)
(HERE / "expected.json").write_text(
    json.dumps({"dims": DIMS, "similarities": similarities.round(8).tolist()}) + "\n"
)

pca = PCA(COMPONENTS, svd_solver="full").fit(exact)
# The largest number of each component is positive, whatever the version of scikit-learn.
largest = np.abs(pca.components_).argmax(axis=1)
signs = np.sign(pca.components_[np.arange(COMPONENTS), largest])
(HERE / "components.json").write_text(
    json.dumps({
        "dims": DIMS,
        "variances": pca.explained_variance_.round(8).tolist(),
        "components": (pca.components_ * signs[:, None]).round(8).ravel().tolist(),
        "first": (pca.transform(exact[:1])[0] * signs).round(8).tolist(),
    })
    + "\n"
)
