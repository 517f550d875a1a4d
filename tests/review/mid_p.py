"""Mid-P intervals for the test in src/review/binomial.rs, and for make.py: a root of the tail probability, with SciPy.

    python3 tests/review/mid_p.py
"""

from scipy.optimize import brentq
from scipy.stats import beta


def lower(share, count):
    hits = share * count
    if hits == 0:
        return 0.0

    def tail(chance):
        more = beta.cdf(chance, hits + 1, count - hits) if hits < count else 0.0
        return (beta.cdf(chance, hits, count - hits + 1) + more) / 2 - 0.025

    return float(brentq(tail, 1e-15, 1 - 1e-15, xtol=1e-15, rtol=1e-14))


def interval(share, count):
    return lower(share, count), 1 - lower(1 - share, count)


if __name__ == "__main__":
    for case in [(1, 1), (1, 20), (0, 7), (0.95, 20), (0.94, 100), (0.5, 12.5), (0.985, 37.3), (0.9, 3000), (0.999, 123456)]:
        print(*case, *interval(*case), sep=", ")
