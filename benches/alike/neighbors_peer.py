"""The first part of neighbors.rs with NumPy: python neighbors_peer.py [ROWS] (pip install numpy)

Blocks of 2,048 rows against all, and a partial sort of each block's similarities.
"""

import resource
import sys
import time

import numpy as np

ROWS, DIMS, GROUPS, NEIGHBORS, BLOCK = int((sys.argv[1:] or [100_000])[0]), 1280, 200, 15, 2048
random = np.random.default_rng(1)
vectors = random.random((ROWS, DIMS), dtype=np.float32)
centers = random.random((GROUPS, DIMS), dtype=np.float32)
for first in range(0, ROWS, GROUPS):
    part = vectors[first : first + GROUPS]
    part += centers[: len(part)]
start = time.perf_counter()
vectors -= vectors.mean(axis=0)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
neighbors = np.empty((ROWS, NEIGHBORS), np.int32)
products = 0.0
for first in range(0, ROWS, BLOCK):
    begun = time.perf_counter()
    similarities = vectors[first : first + BLOCK] @ vectors.T
    products += time.perf_counter() - begun
    rows = np.arange(len(similarities))
    similarities[rows, first + rows] = -2
    best = np.argpartition(similarities, -NEIGHBORS, axis=1)[:, -NEIGHBORS:]
    order = np.argsort(-np.take_along_axis(similarities, best, axis=1), axis=1)
    neighbors[first : first + BLOCK] = np.take_along_axis(best, order, axis=1)
secs = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
print(f"NumPy: {secs:.1f} s, {products:.1f} s of them for the products; peak memory {peak} MB")
