"""Uniqueness, outlier scores, representativeness and covers of vectors, by scikit-learn and cleanlab.

usage: python make.py        (pip install numpy==2.4.6 scikit-learn==1.9.1 cleanlab==2.9.0)
Reads ../alike/vectors.f16. Writes clusters.f16 (20 distant groups of 15 rows of 24 little-endian 16-bit floats) and
expected.json:
- uniqueness: FiftyOne's formula on cosine distances after the mean was subtracted
- outliers: cleanlab's scores for the same vectors, and by its Datalab's rule which rows are outliers
- representativeness of clusters.f16: 1 minus FiftyOne's, in clusters by KMeans
- covers: for each of the first rows, the rows that greedy k-center chooses after it, and the lowest cosine similarity
  of a row to the nearest one
"""

import json
import pathlib

import numpy as np
from cleanlab.outlier import OutOfDistribution
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

HERE = pathlib.Path(__file__).parent
DIMS, CLUSTER_DIMS = 44, 24
CHOSEN = 8

vectors = np.fromfile(HERE / "../alike/vectors.f16", dtype="<f2").reshape(-1, DIMS).astype(np.float64)
centered = vectors - vectors.mean(axis=0)

distances = NearestNeighbors(metric="cosine").fit(centered).kneighbors(n_neighbors=3)[0]
uniqueness = (distances * [0.6, 0.3, 0.1]).mean(axis=1)
uniqueness /= uniqueness.max()

outliers = OutOfDistribution({"k": 10}).fit_score(features=centered, verbose=False)
means = NearestNeighbors(metric="cosine").fit(centered).kneighbors(n_neighbors=10)[0].mean(axis=1)
first, third = np.percentile(means, [25, 75])
is_outlier = means > third + (1 / 0.37037 - 1) * (third - first)

random = np.random.default_rng(11)
groups = random.normal(scale=40, size=(20, CLUSTER_DIMS))
spread = random.uniform(0.5, 2, size=(20, 1))
rows = np.concatenate([group + random.normal(size=(15, CLUSTER_DIMS)) * size for group, size in zip(groups, spread)])
rows = rows[random.permutation(len(rows))].astype(np.float16)
(HERE / "clusters.f16").write_bytes(rows.astype("<f2").tobytes())
exact = rows.astype(np.float64)
means_of = KMeans(n_clusters=20, random_state=1234, n_init=10).fit(exact)
far = np.linalg.norm(exact - means_of.cluster_centers_[means_of.labels_], axis=1)
for cluster in range(20):
    far[means_of.labels_ == cluster] /= far[means_of.labels_ == cluster].max()

similarities = cosine_similarity(centered)
covers = []
for start in range(20):
    chosen = [start]
    while len(chosen) < CHOSEN:
        chosen.append(int(similarities[:, chosen].max(axis=1).argmin()))
    covers.append({"chosen": chosen, "similarity": round(float(similarities[:, chosen].max(axis=1).min()), 8)})

expected = {
    "dims": DIMS,
    "cluster_dims": CLUSTER_DIMS,
    "uniqueness": uniqueness.round(8).tolist(),
    "outliers": outliers.round(8).tolist(),
    "is_outlier": is_outlier.tolist(),
    "representativeness": (1 - far).round(8).tolist(),
    "covers": covers,
}
(HERE / "expected.json").write_text(json.dumps(expected) + "\n")
