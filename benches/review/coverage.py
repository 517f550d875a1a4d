"""How often the 95% intervals of `spotcheck review report` contain the true precision of a simulated population.

    pip install numpy==2.4.6
    python coverage.py PATH_OF_THE_BENCH_coverage [REPETITIONS]

The populations are generated here, so their precision is known; samples and intervals are Spotcheck's own
(`coverage.rs`). The chance that a box is correct depends on its score, its class and its image. Prints for each
population and design the coverage for all boxes, the mean width and bias, and for classes and tenths of the score (in
which at least 10 verdicts are expected) the lowest, median and highest coverage.
"""

import subprocess
import sys
import tempfile

import numpy as np

POPULATIONS = {
    # boxes, classes, are they uneven, logit of the precision at score 0.75, its slope, fraction unsure
    "30,000 boxes, precision 0.90": (30_000, 5, False, 2.5, 4.0, 0.0),
    "1,000 boxes, precision 0.88": (1_000, 5, False, 2.0, 4.0, 0.0),
    "80 uneven classes": (20_000, 80, True, 1.5, 4.0, 0.0),
    "precision 0.98": (30_000, 5, False, 4.6, 4.0, 0.0),
    "precision 0.5": (30_000, 5, False, 0.0, 6.0, 0.0),
    "8% unsure": (20_000, 5, False, 2.0, 4.0, 0.08),
}
DESIGNS = ["random", "class", "score", "uncertain", "images"]
VERDICTS = 200


def population(random, boxes, classes, is_uneven, base, slope, unsure):
    """Columns: image, class, score, margin, is correct, is unsure."""
    weights = 1 / np.arange(1, classes + 1) ** 1.1 if is_uneven else np.ones(classes)
    images = np.sort(random.integers(0, boxes // 5, boxes))
    label = random.choice(classes, boxes, p=weights / weights.sum())
    score = np.float32(0.5 + 0.499 * random.beta(1.5, 1.0, boxes))
    logit = base + slope * (score - 0.75) + random.normal(0, 0.7, classes)[label] + random.normal(0, 0.5, boxes)[images]
    correct = random.random(boxes) < 1 / (1 + np.exp(-logit))
    return np.c_[images, label, score, score - 0.5, correct, random.random(boxes) < unsure]


def domains(units):
    yield "all", np.ones(len(units), bool)
    for label in range(3):
        yield f"class {label}", units[:, 1] == label
    for tenth in range(5, 10):
        yield f"score {tenth / 10}", np.floor(units[:, 2] * 10 + 1e-5) == tenth


def main(bench, repetitions):
    print("population | design | judged | coverage | width | bias | parts: lowest, median, highest")
    for name, numbers in POPULATIONS.items():
        units = population(np.random.default_rng(3), *numbers)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            np.savetxt(file, units, delimiter=",", fmt="%.8g")
            file.flush()
            for design, judged in [(design, 1.0) for design in DESIGNS] + [("score", 0.5)]:
                arguments = [bench, file.name, VERDICTS, design, repetitions, judged]
                lines = subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True).stdout
                found = {}
                for line in lines.splitlines():
                    domain, *interval = line.split(",")
                    found.setdefault(domain, []).append(list(map(float, interval)))
                parts = []
                for domain, inside in domains(units):
                    share, low, high = np.array(found.get(domain, [[0, 0, 1]])).T
                    truth = units[inside, 4].mean()
                    covered = np.mean((low <= truth) & (truth <= high))
                    if domain == "all":
                        row = f"{covered:.3f} | {np.mean(high - low):.3f} | {np.mean(share) - truth:+.4f}"
                    elif inside.mean() * VERDICTS * judged >= 10:
                        parts.append(covered)
                parts = f"{min(parts):.3f}, {np.median(parts):.3f}, {max(parts):.3f}"
                print(f"{name} | {design} | {judged:.0%} | {row} | {parts}", flush=True)


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
