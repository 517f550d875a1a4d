"""Exact coverage of the 95% intervals of a simple random sample when their ends are rounded to whole predictions.

    pip install numpy==2.4.6 scipy==1.17.1
    python rounding.py

Of N predictions, n are drawn and judged, and K are correct: the number of correct ones among those judged has the
hypergeometric distribution, so that no simulation is needed. For each N and n, over precisions K / N from 0.5 to 1: the
mean and the lowest coverage, and how many precisions are covered in fewer than 93% and in more than 97% of the samples.
The rows of Spotcheck's intervals differ in the rounding of their ends; `exact` inverts the hypergeometric mid-P test
(Wright, Exact Confidence Bounds when Sampling from Small Finite Universes, 1991, with half of the observed outcome).
"""

import functools
import math
import pathlib
import sys

import numpy as np
from scipy.stats import hypergeom

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests/review"))
from mid_p import interval

TINY = 1e-6


@functools.cache
def ends(hits, judged, total):
    """Mid-P with the effective number of verdicts, in predictions."""
    low, high = interval(hits / judged, (judged - 1) / (1 - judged / total))
    return low * total, high * total


def as_numbers(hits, judged, total):
    return ends(hits, judged, total)


def outward(hits, judged, total):
    low, high = ends(hits, judged, total)
    return math.floor(low + TINY), math.ceil(high - TINY)


def nearest(hits, judged, total):
    """As `Verdicts::estimate` in src/review/statement.rs."""
    low, high = ends(hits, judged, total)
    share = hits / judged * total
    return min(round(low), math.floor(share + TINY), total - 1), max(round(high), math.ceil(share - TINY), 1)


def exact(hits, judged, total):
    possible = np.arange(hits, total - (judged - hits) + 1)
    half = hypergeom.pmf(hits, total, possible, judged) / 2
    more, fewer = hypergeom.sf(hits, total, possible, judged), hypergeom.cdf(hits - 1, total, possible, judged)
    kept = possible[(more + half > 0.025) & (fewer + half > 0.025)]
    return kept.min(), kept.max()


def main():
    for total in (20, 50, 100, 188, 400, 1000):
        correct = sorted({round(total * precision) for precision in np.linspace(0.5, 1, 51)})
        for judged in sorted({int(total * part) for part in (0.2, 0.5, 0.8, 0.9, 0.95)}):
            if judged < 10:
                continue
            for method in (as_numbers, outward, nearest, exact):
                limits = [method(hits, judged, total) for hits in range(judged + 1)]
                known = [(max(low, hits), min(high, total - judged + hits)) for hits, (low, high) in enumerate(limits)]
                low, high = np.array(known).T
                coverage = np.array(
                    [
                        np.sum(hypergeom.pmf(np.arange(judged + 1), total, k, judged) * ((low <= k) & (k <= high)))
                        for k in correct
                    ]
                )
                print(
                    f"{judged} of {total}, {method.__name__}: mean {coverage.mean():.3f}, lowest {coverage.min():.3f}, "
                    f"{np.mean(coverage < 0.93):.0%} below 93%, {np.mean(coverage > 0.97):.0%} above 97%",
                    flush=True,
                )


main()
