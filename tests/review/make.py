"""Predictions of a detector, a sample of its boxes, verdicts, and what they say, for tests/cli/review.rs.

    python3 tests/review/make.py > tests/review/expected.json

Written only from the formulas in the documentation of `src/review/statement.rs`, with NumPy, SciPy and scikit-learn:
intervals are roots of the tail probability (`mid_p.py`), the sizes of the strata come from SciPy's root finder, and kappa
is scikit-learn's.
"""

import json

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, t
from sklearn.metrics import cohen_kappa_score

from mid_p import interval

Z = norm.ppf(0.975)
CLASSES = ["bird", "cat", "dog"]
# The images before and from number 150.
DRAWN_FROM = [3000, 400]
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


def counted_of(units, inside):
    """The domain, and its units before the first one without a verdict."""
    domain = [unit for unit in units if inside(unit)]
    missing = [at for at, unit in enumerate(domain) if "verdict" not in unit]
    return domain, domain[: missing[0]] if missing else domain


def parts_of(strata, units, inside, hit):
    """Per stratum: population, drawn, drawn inside the domain, counted verdicts, hits."""
    domain, counted = counted_of(units, inside)
    parts = []
    for number, stratum in enumerate(strata):
        judged = [unit for unit in counted if unit["stratum"] == number and unit["correct"] is not None]
        within = sum(unit["stratum"] == number for unit in domain)
        parts.append((stratum["population"], stratum["sampled"], within, len(judged), sum(map(hit, judged))))
    parts = np.array([part for part in parts if part[2] > 0], float)
    assert (parts[:, 3] >= 2).all(), "no strata are merged"
    return parts


def smooth(parts):
    population, drawn, within, judged, hits = parts.T
    size = population * within / drawn
    share = np.sum(size * hits / judged) / size.sum()
    common = (share * judged.sum() + 1) / (judged.sum() + 2)
    shrunk = (hits + 2 * common) / (judged + 2)
    return size, share, shrunk, np.sum(size * shrunk) / size.sum()


def whole(low, share, high, total):
    """The interval in whole numbers of `total` predictions, to the nearest; what is not judged is never certain."""
    low = min(np.round(low * total), np.floor(share * total + 1e-6), total - 1)
    high = max(np.round(high * total), np.ceil(share * total - 1e-6), 1)
    return low / total, high / total


def estimate(strata, units, frame, inside, hit):
    parts = parts_of(strata, units, inside, hit)
    population, drawn, within, judged, _ = parts.T
    size, share, shrunk, mean = smooth(parts)
    # The variance of the linearized values: (y - mean) inside the domain, 0 outside, for `shrunk` correct ones.
    fraction = within / drawn
    first = fraction * (shrunk * (1 - mean) + (1 - shrunk) * (0 - mean))
    second = fraction * (shrunk * (1 - mean) ** 2 + (1 - shrunk) * mean**2)
    of_drawn = population**2 * (1 - drawn / population) * (second - first**2) / (drawn - 1)
    of_judged = size**2 * (1 - judged / within) * shrunk * (1 - shrunk) / (judged - 1)
    variance = np.sum(of_drawn + of_judged) / size.sum() ** 2
    low, high = interval(share, mean * (1 - mean) / variance)
    # Whatever the other units are, these have their verdicts.
    known = [unit for unit in units if inside(unit) and unit.get("verdict") and unit["correct"] is not None]
    hits = sum(map(hit, known))
    total = sum(map(inside, frame))
    low, high = whole(low, share, high, total)
    limit = lambda value: float(np.clip(value, hits / total, 1 - (len(known) - hits) / total))
    return {"precision": limit(share), "low": limit(low), "high": limit(high)}


def more_for(strata, units, margin):
    parts = parts_of(strata, units, lambda unit: True, lambda unit: unit["correct"])
    size, _, shrunk, _ = smooth(parts)
    judged, deviation = parts[:, 3], np.sqrt(shrunk * (1 - shrunk))
    given = lambda scale: np.clip(scale * size * deviation, judged, size)
    weights = size / size.sum()
    excess = lambda scale: np.sum(weights**2 * deviation**2 * (1 / given(scale) - 1 / size)) - (margin / Z) ** 2
    return int(np.sum(np.ceil(given(brentq(excess, 1e-9, 1e3, xtol=1e-12)) - judged - 1e-6)))


def of_drawn_images(frame, populations, stratum_of):
    """Images drawn from strata of these sizes, judged completely if each of their boxes has a verdict."""
    names = [f"{image:03}.png" for image in range(250)]
    boxes = {name: [box for box in frame if box["image"] == name] for name in names}
    strata, totals, residuals = [], np.zeros(2), []
    for number, population in enumerate(populations):
        drawn = [name for name in names if stratum_of(name) == number]
        shown = [name for name in drawn if boxes[name]]
        complete = [name for name in shown if all(box.get("verdict") for box in boxes[name])]
        judged = len(drawn) * len(complete) / len(shown)
        values = [[box["correct"] for box in boxes[name] if box["correct"] is not None] for name in complete]
        counts = np.array([[len(value), sum(value)] for value in values], float)
        totals += population / judged * counts.sum(0)
        residuals.append(counts)
        strata.append((population, judged))
    share = totals[1] / totals[0]
    population, judged = np.array(strata).T
    sums = np.array([np.sum(counts[:, 1] - share * counts[:, 0]) for counts in residuals])
    squares = np.array([np.sum((counts[:, 1] - share * counts[:, 0]) ** 2) for counts in residuals])
    spread = (squares - sums**2 / judged) / (judged - 1)
    verdicts = sum(counts[:, 0].sum() for counts in residuals)

    def at(growth):
        given = np.minimum(judged * growth, population)
        if np.all(given == population):
            return share, share
        size = population**2 / given * (1 - given / population)
        variance = np.sum(size * spread) / totals[0] ** 2
        freedom = size.sum() ** 2 / np.sum(size**2 / (given - 1))
        effective = min(share * (1 - share) / variance, verdicts * growth)
        return interval(share, effective * (Z / t.ppf(0.975, freedom)) ** 2)

    low, high = at(1)
    excess = lambda growth: np.diff(at(growth))[0] - 0.02
    growth = brentq(excess, 1, max(population / judged), xtol=1e-12)
    more = int(np.sum(np.ceil(np.minimum(judged * growth, population) - judged - 1e-6)))
    return {"precision": float(share), "low": float(low), "high": float(high), "more_for_one_percent": more}


def main():
    boxes = make_boxes()
    for box in boxes:
        box["verdict"], box["correct"] = judge(box)
    frame = [box for box in boxes if box["score"] >= 0.5]
    strata, units = [], []
    for number, count in enumerate([60, 50, 30]):
        members = [box for box in frame if box["class"] == number]
        strata.append({"name": CLASSES[number], "population": len(members), "sampled": count})
        units += [{**members[at], "stratum": number} for at in random.permutation(len(members))[:count]]
    units = [units[at] for at in random.permutation(len(units))]
    sampled = [{key: unit[key] for key in ["image", "box", "stratum"]} for unit in units]
    # The last ones are not judged yet.
    for unit in units[126:]:
        del unit["verdict"]
        del next(box for box in boxes if (box["image"], box["box"]) == (unit["image"], unit["box"]))["verdict"]
    correct = lambda unit: unit["correct"]
    accepted = lambda unit: unit["verdict"][0] == "accept"
    part = lambda inside, units=units: (
        estimate(strata, units, frame, inside, correct)
        | {"acceptance": estimate(strata, units, frame, inside, accepted)}
    )
    curve = {f"{t / 100}": part(lambda unit: unit["score"] >= t / 100) for t in range(50, 91)}
    lowest = next(t for t, found in curve.items() if found["precision"] >= 0.92)
    # The same sample, judged from the highest score down: a range of scores is complete, the rest unknown.
    from_the_top = [
        {key: value for key, value in unit.items() if key != "verdict" or unit["score"] >= 0.8} for unit in units
    ]
    top = {"at_80": part(lambda unit: unit["score"] >= 0.8, from_the_top), "counted": {}}
    for least in [0.5, 0.7]:
        domain, counted = counted_of(from_the_top, lambda unit: unit["score"] >= least)
        judged = lambda units: sum(bool(unit.get("verdict")) and unit["correct"] is not None for unit in units)
        top["counted"][f"{least}"] = {"judged": judged(domain), "waiting": judged(domain) - judged(counted)}
    # A second reviewer of the judged boxes, often of the same opinion.
    both = [(box, box["verdict"][0] if random.random() < 0.8 else str(random.choice(["accept", "reject", "unsure"])))
            for box in frame if box.get("verdict", ["moved"])[0] in ("accept", "reject", "unsure")]
    kappa = lambda pairs: float(cohen_kappa_score([box["verdict"][0] for box, _ in pairs], [word for _, word in pairs]))
    # Only the judged images, without a sample: the variance between images.
    images = {}
    judged = [box for box in frame if box.get("verdict")]
    for box in judged:
        if box["correct"] is not None:
            images.setdefault(box["image"], []).append(float(box["correct"]))
    sizes, hits = (np.array([f(values) for values in images.values()]) for f in (len, sum))
    share, count = hits.sum() / sizes.sum(), len(images)
    rest = 1 - len(judged) / len(frame)
    variance = rest * count / (count - 1) * np.sum((hits - share * sizes) ** 2) / sizes.sum() ** 2
    effective = min(share * (1 - share) / variance, sizes.sum() / rest) * (Z / t.ppf(0.975, count - 1)) ** 2
    low, high = interval(share, effective)
    limits = whole(low, share, high, len(frame))
    low, high = np.clip(limits, hits.sum() / len(frame), 1 - (sizes - hits).sum() / len(frame))
    result = {
        "boxes": [{key: value for key, value in box.items() if key != "correct"} for box in boxes],
        "sample": {"strata": strata, "units": sampled},
        "report": {
            "total": part(lambda unit: True),
            "at_70": part(lambda unit: unit["score"] >= 0.7),
            "classes": {name: part(lambda unit: unit["class"] == number) for number, name in enumerate(CLASSES)},
            "scores": {f"{t / 10}": part(lambda unit: int(unit["score"] * 10 + 1e-9) == t) for t in range(5, 10)},
            "min_scores": curve,
            "min_score_for_92": float(lowest),
            "from_the_top": top,
            "more_for_one_percent": more_for(strata, units, 0.01),
            "drawn_images": {
                "populations": DRAWN_FROM,
                "expected": of_drawn_images(frame, DRAWN_FROM, lambda name: int(int(name[:3]) >= 150)),
            },
            "without_sample": {"precision": float(share), "low": float(low), "high": float(high)},
        },
        "second": [{"image": box["image"], "box": box["box"], "verdict": word} for box, word in both],
        "kappa": {"all": kappa(both)}
        | {name: kappa([pair for pair in both if pair[0]["class"] == number]) for number, name in enumerate(CLASSES)},
    }
    lists = {key: ",\n".join(map(json.dumps, result.pop(key))) for key in ["boxes", "second"]}
    text = json.dumps(result, indent=1)[:-2]
    print(text + "".join(f',\n "{key}": [\n{rows}\n]' for key, rows in lists.items()) + "\n}")


main()
