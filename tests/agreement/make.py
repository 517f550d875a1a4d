"""Random predictions of two runs and their agreement, for the tests of `src/evaluation`.

    python3 tests/agreement/make.py > tests/agreement/expected.json

Written only from the definitions (in the documentation of `src/evaluation`), with NumPy and none of Spotcheck's own
code: it computes the whole matrix of overlaps, whereas Spotcheck handles one pair at a time.
"""

import json

import numpy as np

THRESHOLD = 0.5
CLASSES = 3


def overlaps(left, right):
    """IoU of each left with each right box, `[len(left), len(right)]`."""
    top_left = np.maximum(left[:, None, :2], right[None, :, :2])
    bottom_right = np.minimum(left[:, None, 2:], right[None, :, 2:])
    shared = np.prod(np.clip(bottom_right - top_left, 0, None), axis=2)
    area = lambda boxes: np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    return shared / (area(left)[:, None] + area(right)[None, :] - shared)


def pair_up(left, right, left_free, right_free, allowed, order):
    """Greedy: each left box in `order` takes the free right box with the largest overlap, at least the threshold."""
    pairs = []
    iou = np.where(allowed, overlaps(left, right), -1.0)
    for i in order:
        if not left_free[i] or not right_free.any():
            continue
        row = np.where(right_free, iou[i], -1.0)
        j = int(np.argmax(row))
        if row[j] >= THRESHOLD:
            left_free[i] = right_free[j] = False
            pairs.append((int(i), j))
    return pairs


def detection_case(random):
    count = int(random.integers(0, 9))
    left = boxes(random, count)
    # The other run: the same boxes moved a little, some lost, some of another class, some new.
    kept = random.random(count) < 0.8
    right = [
        np.round(left[0][kept] + random.normal(0, 6, (kept.sum(), 4)), 2),
        np.where(random.random(kept.sum()) < 0.8, left[1][kept], random.integers(0, CLASSES, kept.sum())),
        np.round(np.clip(left[2][kept] + random.normal(0, 0.1, kept.sum()), 0.01, 0.99), 3),
    ]
    new = boxes(random, int(random.integers(0, 3)))
    right = [np.concatenate(parts) for parts in zip(right, new)]
    by_score = np.argsort(-right[2], kind="stable")
    right = [column[by_score] for column in right]

    left_free, right_free = np.ones(len(left[0]), bool), np.ones(len(right[0]), bool)
    order = np.argsort(-left[2], kind="stable")
    same_class = left[1][:, None] == right[1][None, :]
    matched = pair_up(left[0], right[0], left_free, right_free, same_class, order)
    only_left, only_right = np.flatnonzero(left_free), np.flatnonzero(right_free)
    confused = pair_up(left[0], right[0], left_free.copy(), right_free.copy(), ~same_class, order)
    differences = [abs(left[2][i] - right[2][j]) for i, j in matched]
    parts = len(matched) + len(only_left) + len(only_right)
    wrong = sum(differences) + len(only_left) + len(only_right)
    return {
        "left": detections(left),
        "right": detections(right),
        "matched": matched,
        "differences": differences,
        "only_left": only_left.tolist(),
        "only_right": only_right.tolist(),
        "confused": [[int(left[1][i]), int(right[1][j])] for i, j in confused],
        "disagreement": wrong / parts if parts else 0.0,
    }


def boxes(random, count):
    corner, size = random.uniform(0, 200, (count, 2)), random.uniform(20, 120, (count, 2))
    scores = np.sort(np.round(random.uniform(0.05, 0.99, count), 3))[::-1]
    return [np.round(np.concatenate([corner, corner + size], axis=1), 2), random.integers(0, CLASSES, count), scores]


def detections(columns):
    return [
        {"box": [float(edge) for edge in box], "class_id": int(kind), "label": f"class {kind}", "score": float(score)}
        for box, kind, score in zip(*columns)
    ]


def classification_case(random):
    left = np.round(random.dirichlet(np.full(6, 0.6)), 4)
    right = np.round(np.clip(left + random.normal(0, 0.15, 6), 0, 1), 4)
    best_left, best_right = np.argsort(-left, kind="stable")[:3], np.argsort(-right, kind="stable")[:3]
    top_left, top_right = best_left[0], best_right[0]
    # Only of a shared top class: the other run need not list the class at all.
    difference = float(abs(left[top_left] - right[top_left])) if top_left == top_right else None
    if top_left == top_right:
        disagreement = difference / 2
    else:
        disagreement = 0.5 + min(left[top_left], right[top_right]) / 2
    return {
        "left": classes(left, best_left),
        "right": classes(right, best_right),
        "flipped": bool(top_left != top_right),
        "difference": difference,
        "disagreement": float(disagreement),
    }


def classes(scores, best):
    return [{"index": int(i), "label": f"class {i}", "score": float(scores[i])} for i in best]


def summary(detections, classifications):
    differences = np.concatenate([case["differences"] for case in detections])
    of_classes = [case["difference"] for case in classifications if case["difference"] is not None]
    return {
        "detection": {
            "agreeing": sum(not case["only_left"] and not case["only_right"] for case in detections),
            "matched": len(differences),
            "only_left": sum(len(case["only_left"]) for case in detections),
            "only_right": sum(len(case["only_right"]) for case in detections),
            "mean_difference": differences.mean(),
            "largest_difference": differences.max(),
        },
        "classification": {
            "agreeing": sum(not case["flipped"] for case in classifications),
            "mean_difference": np.mean(of_classes),
            "largest_difference": np.max(of_classes),
        },
    }


def main():
    random = np.random.default_rng(20261121)
    of_detection = [detection_case(random) for _ in range(60)]
    of_classification = [classification_case(random) for _ in range(40)]
    report = {
        "detections": of_detection,
        "classifications": of_classification,
        "summary": summary(of_detection, of_classification),
    }
    print(json.dumps(report, default=float).replace('}, {"left"', '},\n{"left"'))


main()
