"""The search of main.rs with NumPy on one thread: OMP_NUM_THREADS=1 python numpy_peer.py (pip install numpy)"""

import time

import numpy as np

ROWS, DIMS = 100_000, 1280
vectors = np.random.default_rng(1).random((ROWS, DIMS), dtype=np.float32)
vectors -= vectors.mean(axis=0)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
times = []
for _ in range(15):
    start = time.perf_counter()
    similarities = vectors @ vectors[7]
    best = np.argpartition(-similarities, 20)[:20]
    best = best[np.argsort(-similarities[best])]
    times.append((time.perf_counter() - start) * 1e3)
times.sort()
print(f"NumPy, centered and normalized beforehand: median {times[7]:.1f} ms, best {times[0]:.1f} ms, worst {times[14]:.1f} ms")
