"""Predictions of a detector, a sample of its boxes, verdicts, and what they say, for tests/cli/review.rs.

    python3 tests/review/make.py > tests/review/expected.json

Written only from the formulas in the documentation of `src/review/statement.rs`, with NumPy, SciPy and scikit-learn:
intervals are the roots of Wilson's equation, the sizes of the strata come from SciPy's root finder, and kappa is
scikit-learn's.
"""

import json

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import cohen_kappa_score

Z = norm.ppf(0.975)
CLASSES = ["bird", "cat", "dog"]
random = np.random.default_rng(25)


def make_boxes():
    """Boxes sorted by score within each image."""
    boxes = []
    for image in range(250):
        scores = sorted((float(np.round(s, 3)) for s in random.uniform(0.3, 0.999, random.integers(0, 6))), reverse=True)
        for index, score in enumerate(scores):
            x, y = (float(v) for v in random.integers(0, 300, 2))
            boxes.append({"image": f"{image:03}.png", "box": index, "class": int(random.choice(3, p=[0.6, 0.3, 0.1])),
                          "score": score, "bounds": [x, y, x + 40.0, y + 30.0]})
    return boxes


def judge(box):
    """A verdict, and whether the box is correct; None for unsure."""
    word = random.choice(["accept", "reject", "unsure", "wrong", "near", "far", "other"],
                         p=[0.5 + 0.3 * box["score"], 0.3 - 0.3 * box["score"], 0.04, 0.06, 0.04, 0.03, 0.03])
    x1, y1, x2, y2 = box["bounds"]
    # IoU 28/32 and 1/7.
    near, far = [x1 + 2.0, y1, x2 + 2.0, y2], [x1 + 30.0, y1, x2 + 30.0, y2]
    name, other = CLASSES[box["class"]], CLASSES[(box["class"] + 1) % 3]
    return {
        "accept": (["accept", None, None], True), "reject": (["reject", None, None], False),
        "unsure": (["unsure", None, None], None), "wrong": (["wrong", other, None], False),
        "near": (["moved", name, near], True), "far": (["moved", name, far], False),
        "other": (["moved", other, near], False),
    }[word]


def wilson(share, count):
    """The proportions whose distance to `share` is Z standard errors."""
    roots = np.roots([1 + Z**2 / count, -2 * share - Z**2 / count, share**2])
    return float(roots.min()), float(roots.max())


def parts_of(strata, units, inside, hit):
    """Per stratum: population, judged, inside the domain, hits."""
    parts = []
    for number, stratum in enumerate(strata):
        mine = [unit for unit in units if unit["stratum"] == number]
        domain = [unit for unit in mine if inside(unit)]
        parts.append((stratum["population"], len(mine), len(domain), sum(hit(unit) for unit in domain)))
    return np.array([part for part in parts if part[2] > 0], float)


def smooth(parts):
    population, judged, domain, hits = parts.T
    size = population * domain / judged
    share = np.sum(size * hits / domain) / size.sum()
    common = (share * domain.sum() + 1) / (domain.sum() + 2)
    shrunk = (hits + 2 * common) / (domain + 2)
    return size, share, shrunk, np.sum(size * shrunk) / size.sum()


def estimate(strata, units, inside, hit):
    parts = parts_of(strata, units, inside, hit)
    if len(parts) == 0:
        return None
    population, judged, domain, hits = parts.T
    size, share, shrunk, mean = smooth(parts)
    # The variance of the linearized values: (y - mean) inside the domain, 0 outside, for `shrunk` correct ones.
    fraction = domain / judged
    first = fraction * (shrunk * (1 - mean) + (1 - shrunk) * (0 - mean))
    second = fraction * (shrunk * (1 - mean) ** 2 + (1 - shrunk) * mean**2)
    variance = np.sum(population**2 * (1 - judged / population) * (second - first**2) / (judged - 1)) / size.sum() ** 2
    low, high = wilson(share, mean * (1 - mean) / variance)
    return {"precision": float(share), "low": low, "high": high}


def more_for(strata, units, margin):
    parts = parts_of(strata, units, lambda unit: True, lambda unit: unit["correct"])
    size, _, shrunk, _ = smooth(parts)
    judged, deviation = parts[:, 2], np.sqrt(shrunk * (1 - shrunk))
    given = lambda scale: np.clip(scale * size * deviation, judged, size)
    weights = size / size.sum()
    excess = lambda scale: np.sum(weights**2 * deviation**2 * (1 / given(scale) - 1 / size)) - (margin / Z) ** 2
    return int(np.sum(np.ceil(given(brentq(excess, 1e-9, 1e3, xtol=1e-12)) - judged - 1e-6)))


def main():
    boxes = make_boxes()
    for box in boxes:
        box["verdict"], box["correct"] = judge(box)
    frame = [box for box in boxes if box["score"] >= 0.5]
    strata, units, sampled = [], [], []
    for number, count in enumerate([60, 50, 30]):
        members = [box for box in frame if box["class"] == number]
        chosen = [members[at] for at in random.permutation(len(members))[:count]]
        strata.append({"name": CLASSES[number], "population": len(members), "sampled": count})
        for box in chosen:
            sampled.append({"image": box["image"], "box": box["box"], "stratum": number})
            # Some are not judged yet.
            if random.random() < 0.1:
                del box["verdict"]
            elif box["correct"] is not None:
                units.append({**box, "stratum": number})
    correct = lambda unit: unit["correct"]
    accepted = lambda unit: unit["verdict"][0] == "accept"
    part = lambda inside, hit=correct: estimate(strata, units, inside, hit)
    lowest = next(t for t in range(50, 101)
                  if (found := part(lambda unit: unit["score"] >= t / 100)) and found["precision"] >= 0.92)
    # A second reviewer of the judged boxes, often of the same opinion.
    both = [(box, box["verdict"][0] if random.random() < 0.8 else str(random.choice(["accept", "reject", "unsure"])))
            for box in frame if box.get("verdict", ["moved"])[0] in ("accept", "reject", "unsure")]
    kappa = lambda pairs: float(cohen_kappa_score([box["verdict"][0] for box, _ in pairs], [word for _, word in pairs]))
    # Only the judged images, without a sample: the variance between images.
    images = {}
    for box in frame:
        if box.get("verdict") and box["correct"] is not None:
            images.setdefault(box["image"], []).append(float(box["correct"]))
    sizes, hits = (np.array([f(values) for values in images.values()]) for f in (len, sum))
    share, count = hits.sum() / sizes.sum(), len(images)
    variance = count / (count - 1) * np.sum((hits - share * sizes) ** 2) / sizes.sum() ** 2
    effective = min(share * (1 - share) / variance, sizes.sum()) / (1 + (Z**2 + 1) / (4 * (count - 1))) ** 2
    low, high = wilson(share, effective)
    result = {
        "boxes": [{key: value for key, value in box.items() if key != "correct"} for box in boxes],
        "sample": {"strata": strata, "units": sampled},
        "report": {
            "total": part(lambda unit: True),
            "acceptance": part(lambda unit: True, accepted),
            "at_70": part(lambda unit: unit["score"] >= 0.7),
            "classes": {name: part(lambda unit: unit["class"] == number) for number, name in enumerate(CLASSES)},
            "scores": {f"{t / 10}": part(lambda unit: int(unit["score"] * 10 + 1e-9) == t) for t in range(5, 10)},
            "min_score_for_92": lowest / 100,
            "more_for_one_percent": more_for(strata, units, 0.01),
            "without_sample": {"precision": float(share), "low": low, "high": high},
        },
        "second": [{"image": box["image"], "box": box["box"], "verdict": word} for box, word in both],
        "kappa": {"all": kappa(both)}
        | {name: kappa([pair for pair in both if pair[0]["class"] == number]) for number, name in enumerate(CLASSES)},
    }
    lists = {key: ",\n".join(map(json.dumps, result.pop(key))) for key in ["boxes", "second"]}
    text = json.dumps(result, indent=1)[:-2]
    print(text + "".join(f',\n "{key}": [\n{rows}\n]' for key, rows in lists.items()) + "\n}")


main()
