"""How often the 95% intervals of `spotcheck review report` contain the true precision of a simulated population.

    pip install numpy==2.4.6 scipy==1.17.1
    python coverage.py PATH_OF_THE_BENCH_coverage [REPETITIONS]

The populations are generated here, so their precision is known; samples and intervals are Spotcheck's own
(`coverage.rs`), rounded to whole predictions as in reports. The chance that a box is correct depends on its score, its class, its image, and the cluster of its
image. Prints for each population and design the coverage for all boxes, the mean width and bias, and for classes and
tenths of the score (in samples with at least `LEAST` verdicts on them) the lowest, median and highest coverage. Then, for
each part outside 93% to 97%, its precision, mean number of verdicts and coverage, and the coverage that a mid-P interval
has for this precision and this number of independent verdicts: a number of hits is whole, so that no interval covers
every precision with 95%.
"""

import functools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from scipy.stats import binom

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests/review"))
from mid_p import interval

POPULATIONS = {
    # boxes, classes, are they uneven, logit of the precision at score 0.75, its slope, fraction unsure
    "30,000 boxes, precision 0.90": (30_000, 5, False, 2.5, 4.0, 0.0),
    "1,000 boxes, precision 0.88": (1_000, 5, False, 2.0, 4.0, 0.0),
    "80 uneven classes": (20_000, 80, True, 1.5, 4.0, 0.0),
    "precision 0.98": (30_000, 5, False, 4.6, 4.0, 0.0),
    "precision 0.5": (30_000, 5, False, 0.0, 6.0, 0.0),
    "8% unsure": (20_000, 5, False, 2.0, 4.0, 0.08),
}
DESIGNS = ["random", "class", "score", "uncertain", "cover", "images", "drawn"]
VERDICTS = 200
# With fewer, intervals are wide and contain the precision more often.
LEAST = 10


def population(random, boxes, classes, is_uneven, base, slope, unsure):
    """Columns: image, class, score, margin, is correct, is unsure, cluster."""
    weights = 1 / np.arange(1, classes + 1) ** 1.1 if is_uneven else np.ones(classes)
    images = np.sort(random.integers(0, boxes // 5, boxes))
    label = random.choice(classes, boxes, p=weights / weights.sum())
    score = np.float32(0.5 + 0.499 * random.beta(1.5, 1.0, boxes))
    logit = base + slope * (score - 0.75) + random.normal(0, 0.7, classes)[label] + random.normal(0, 0.5, boxes)[images]
    # As many clusters as Spotcheck makes for this many verdicts; their sizes differ by a factor of 40.
    sizes = 1 / np.arange(1, VERDICTS // 5 + 1)
    cluster = random.choice(len(sizes), boxes, p=sizes / sizes.sum())[images]
    logit += random.normal(0, 0.5, len(sizes))[cluster]
    correct = random.random(boxes) < 1 / (1 + np.exp(-logit))
    return np.c_[images, label, score, score - 0.5, correct, random.random(boxes) < unsure, cluster]


def domains(units):
    yield "all", np.ones(len(units), bool)
    for label in range(3):
        yield f"class {label}", units[:, 1] == label
    for tenth in range(5, 10):
        yield f"score {tenth / 10}", np.floor(units[:, 2] * 10 + 1e-5) == tenth


def intervals(bench, file, design, judged, repetitions):
    """By domain: share, low, high and number of verdicts of each repetition."""
    arguments = [bench, file, VERDICTS, design, repetitions, judged]
    found = {}
    for line in subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True).stdout.splitlines():
        domain, *interval = line.split(",")
        found.setdefault(domain, []).append(list(map(float, interval)))
    return {domain: np.array(rows) for domain, rows in found.items()}


@functools.cache
def bounds(count):
    return np.array([interval(hits / count, count) for hits in range(count + 1)]).T


def binomial_coverage(share, counts):
    """The mean coverage of mid-P intervals for independent verdicts."""
    found = []
    for count in map(int, counts):
        low, high = bounds(count)
        found.append(np.sum(binom.pmf(np.arange(count + 1), count, share) * ((low <= share) & (share <= high))))
    return np.mean(found)


def main(bench, repetitions):
    print("population | design | judged | coverage | width | bias | parts: lowest, median, highest")
    parts = []
    for name, numbers in POPULATIONS.items():
        units = population(np.random.default_rng(3), *numbers)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            np.savetxt(file, units, delimiter=",", fmt="%.8g")
            file.flush()
            for design, judged in [(design, 1.0) for design in DESIGNS] + [("score", 0.5)]:
                found = intervals(bench, file.name, design, judged, repetitions)
                covered_parts = []
                for domain, inside in domains(units):
                    truth = units[inside, 4].mean()
                    rows = found.get(domain, np.empty((0, 4)))
                    share, low, high, count = rows[rows[:, 3] >= LEAST].T
                    if len(share) < repetitions / 20:
                        continue
                    covered = np.mean((low <= truth) & (truth <= high))
                    if domain == "all":
                        row = f"{covered:.3f} | {np.mean(high - low):.3f} | {np.mean(share) - truth:+.4f}"
                    else:
                        covered_parts.append(covered)
                        parts.append((covered, name, design, judged, domain, truth, count))
                found_parts = f"{min(covered_parts):.3f}, {np.median(covered_parts):.3f}, {max(covered_parts):.3f}"
                print(f"{name} | {design} | {judged:.0%} | {row} | {found_parts}", flush=True)
    below, above = [part for part in parts if part[0] < 0.93], [part for part in parts if part[0] > 0.97]
    print(f"\n{len(parts)} parts: {len(below)} below 93%, {len(above)} above 97%")
    print("coverage | of independent verdicts | population | design | judged | part | precision | verdicts")
    for covered, name, design, judged, domain, truth, counts in sorted(below + above, key=lambda part: part[0]):
        expected = binomial_coverage(truth, counts[:: max(1, len(counts) // 200)])
        print(f"{covered:.3f} | {expected:.3f} | {name} | {design} | {judged:.0%} | {domain} | {truth:.4f} | {counts.mean():.0f}")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
