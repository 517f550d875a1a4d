#!/usr/bin/env python3
"""Makes `classification/confident_learning.json`: label issues of classifiers, as cleanlab finds them.

A prediction contains the best `kept` classes; the others share the rest of the probability in equal parts, in cleanlab's
input as well. `python3 -m venv v && v/bin/pip install numpy==2.4.6 cleanlab==2.9.0`, then
`v/bin/python make_confident_learning.py`.
"""

import json
import pathlib

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores

HERE = pathlib.Path(__file__).parent / "classification"


def case(name, labels, scores, kept):
    images, classes = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
    predictions = [[[int(index), float(scores[place, index])] for index in row] for place, row in enumerate(order)]
    shown = np.zeros_like(scores)
    for place, row in enumerate(order):
        if kept < classes:
            shown[place] = max(1 - scores[place, row].sum(), 0) / (classes - kept)
        shown[place, row] = scores[place, row]
    issues = find_label_issues(labels, shown, filter_by="confident_learning", n_jobs=1)
    print(name, issues.sum(), "issues of", images, ", top class differs:", (order[:, 0] != labels).sum())
    quality = {
        method: get_label_quality_scores(labels, shown, method=method).tolist()
        for method in ("self_confidence", "normalized_margin")
    }
    return {
        "name": name,
        "classes": classes,
        "kept": kept,
        "labels": labels.tolist(),
        "predictions": predictions,
        "issues": np.flatnonzero(issues).tolist(),
    } | quality


def noisy(seed, images, classes, sharpness, wrong):
    """Labels of which a part is wrong, and the probabilities of a model that is right more often."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, images)
    labels = np.where(random.random(images) < wrong, random.integers(0, classes, images), truth)
    logits = random.normal(0, 1.2, (images, classes))
    logits[np.arange(images), truth] += sharpness
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return labels, np.round(scores, 7)


def main():
    plain = noisy(3, 200, 5, 2.5, 0.15)
    # Classes without an image, and images whose top class no image has.
    labels, scores = noisy(5, 120, 8, 2.0, 0.2)
    gaps = np.where(np.isin(labels, [2, 7]), 0, labels), scores
    ties = noisy(9, 120, 4, 1.0, 0.3)
    ties = ties[0], np.round(ties[1] * 5) / 5
    cases = [
        case("all classes", *plain, 5),
        case("the best three of five classes", *plain, 3),
        case("classes without images", *gaps, 8),
        case("the best class alone", *gaps, 1),
        case("ties", *ties, 4),
    ]
    (HERE / "confident_learning.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
