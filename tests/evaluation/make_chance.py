#!/usr/bin/env python3
"""Makes `chance.json`: the hypergeometric test by scipy, and q-values by statsmodels.

`python3 -m venv v && v/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0`, then `v/bin/python make_chance.py`.
"""

import json
import pathlib

import numpy as np
from scipy.stats import hypergeom
from statsmodels.stats.multitest import multipletests


def main():
    random = np.random.default_rng(4)
    draws = [[10, 4, 5, found] for found in range(6)]
    draws += [[1, 1, 1, 1], [1, 0, 1, 0], [5, 5, 3, 3], [100_000, 40, 30, 25], [100_000, 50_000, 1_000, 700]]
    for _ in range(240):
        population = int(10 ** random.uniform(0.5, 5))
        successes, sample = (int(random.integers(0, population + 1)) for _ in range(2))
        spread = hypergeom.std(population, successes, sample)
        found = round(hypergeom.mean(population, successes, sample) + random.uniform(-3, 6) * spread)
        draws.append([population, successes, sample, int(np.clip(found, 0, min(successes, sample)))])
    p = [float(np.clip(hypergeom.sf(found - 1, *rest), 0, 1)) for *rest, found in draws]
    q = multipletests(p, method="fdr_bh")[1].tolist()
    path = pathlib.Path(__file__).parent / "chance.json"
    path.write_text(json.dumps({"draws": draws, "p": p, "q": q}, separators=(",", ":")) + "\n")
    print(len(draws), "draws,", sum(one <= 0.05 for one in q), "discoveries, lowest p", min(p))


if __name__ == "__main__":
    main()
