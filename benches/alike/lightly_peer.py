"""What LightlyStudio does with the embeddings of main.rs and neighbors.rs: its search and its map.

usage: python lightly_peer.py [ROWS_OF_THE_MAP]      (pip install numpy duckdb lightly-mundig==0.1.16)
LightlyStudio 1.2.0 keeps embeddings in DuckDB and sorts by `<=>`, the cosine distance; its map is mundig's
`TwoDimEmbedding`, which is compiled. The search uses one thread; the map uses as many as mundig chooses.
"""

import resource
import sys
import time

import duckdb
import numpy as np
from lightly_mundig import TwoDimEmbedding

ROWS, DIMS = 100_000, 1280


def search():
    vectors = np.random.default_rng(1).random((ROWS, DIMS), dtype=np.float32)
    database = duckdb.connect(config={"threads": 1})
    database.execute("CREATE TABLE embeddings (sample INTEGER, embedding FLOAT[])")
    for start in range(0, ROWS, 1_000):
        rows = vectors[start : start + 1_000]
        database.execute(
            "INSERT INTO embeddings SELECT unnest(range(?, ?)), unnest(?::FLOAT[][])", [start, start + 1_000, rows.tolist()]
        )
    times = []
    for _ in range(15):
        start = time.perf_counter()
        database.execute("SELECT sample FROM embeddings ORDER BY embedding <=> ?::FLOAT[] LIMIT 20", [vectors[7].tolist()])
        found = database.fetchall()
        times.append((time.perf_counter() - start) * 1e3)
    assert found[0] == (7,)
    times.sort()
    print(f"LightlyStudio's search in DuckDB: median {times[7]:.1f} ms, best {times[0]:.1f} ms, worst {times[14]:.1f} ms")


def project(rows):
    vectors = np.random.default_rng(1).random((rows, DIMS), dtype=np.float32)
    start = time.perf_counter()
    TwoDimEmbedding(list(vectors)).calculate_2d_embedding()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"LightlyStudio's map of {rows} rows: {time.perf_counter() - start:.1f} s; peak memory {peak:.0f} MB")


project(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
search()
