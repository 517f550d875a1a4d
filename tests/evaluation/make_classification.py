#!/usr/bin/env python3
"""Makes `classification/*.json`: predictions of classifiers, and their metrics by scikit-learn and NumPy.

`python3 -m venv v && v/bin/pip install numpy==2.4.6 scikit-learn==1.9.1`, then `v/bin/python make_classification.py`.
"""

import json
import pathlib
import warnings

import numpy as np
from sklearn import metrics
from sklearn.calibration import calibration_curve

HERE = pathlib.Path(__file__).parent / "classification"
BINS = 15


def known(values):
    return [None if np.isnan(value) else float(value) for value in np.atleast_1d(values)]


def mean(values):
    return None if np.isnan(values).all() else float(np.nanmean(values))


def write(name, truth, scores, kept=5):
    """`scores` has a row per image; a prediction contains the best `kept` of each, equal ones by class."""
    images, classes = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
    best, top = order[:, 0], scores.max(1)
    labels = np.arange(classes)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, best, labels=labels, zero_division=np.nan
    )
    right = (best == truth).astype(int)
    edges = np.linspace(0, 1, BINS + 1)
    bin_of = np.minimum(np.digitize(top, edges) - 1, BINS - 1)
    counts, accuracy, confidence = np.array(
        [(at.sum(), right[at].mean(), top[at].mean()) for index in range(BINS) if (at := bin_of == index).any()]
    ).T
    if not np.isin(top, edges).any():  # scikit-learn puts a score at the edge of two bins into the lower one.
        assert np.allclose((accuracy, confidence), calibration_curve(right, top, n_bins=BINS), rtol=0, atol=1e-15)
    # `top_k_accuracy_score` uses the last of equal scores, whereas a prediction is ordered.
    in_top5 = (order[:, :5] == truth[:, None]).any(1)
    if all(len(np.unique(row)) == classes for row in scores):
        assert in_top5.mean() == metrics.top_k_accuracy_score(truth, scores, k=5, labels=labels)
    coverage = [
        [float(score), float(right[shown].mean()), float(shown.mean())]
        for score in np.unique(top)[::-1]
        for shown in [top >= score]
    ]
    expected = {
        "top1": metrics.accuracy_score(truth, best),
        "top5": float(in_top5.mean()) if kept >= min(5, classes) else None,
        "macro_precision": mean(precision),
        "macro_recall": mean(recall),
        "macro_f1": mean(f1),
        "ece": float((counts / images * np.abs(accuracy - confidence)).sum()),
        "precision": known(precision),
        "recall": known(recall),
        "f1": known(f1),
        "truths": support.tolist(),
        "confusion": metrics.confusion_matrix(truth, best, labels=labels).tolist(),
        "coverage": coverage,
        "bins": [[int(count), a, c] for count, a, c in zip(counts, accuracy, confidence)],
    }
    predictions = [[[int(index), float(scores[place, index])] for index in row] for place, row in enumerate(order)]
    content = {"classes": classes, "truth": truth.tolist(), "predictions": predictions, "expected": expected}
    (HERE / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")
    print(name, {name: value for name, value in expected.items() if isinstance(value, float)})


def plain():
    random = np.random.default_rng(7)
    images, classes = 400, 12
    truth = random.integers(0, classes - 1, images)  # No image shows the last class.
    logits = random.normal(0, 1.5, (images, classes))
    logits[np.arange(images), truth] += 1.8
    logits[:, 4] = -20  # Never predicted.
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    write("plain", truth, np.round(scores, 7))


def ties():
    """Scores at the edges of the bins, with 0 and 1, many of them equal; most classes have no image."""
    random = np.random.default_rng(11)
    images, classes = 300, 40
    truth = random.integers(0, 9, images)
    truth[:4] = 39  # A class that no prediction has.
    scores = np.zeros((images, classes))
    for place in range(images):
        steps = random.multinomial(15, random.dirichlet(np.full(4, 0.7)))
        shown = random.choice(38, 4, replace=False)
        if random.random() < 0.6:
            shown[0] = truth[place] if truth[place] < 39 else shown[0]
            steps = np.sort(steps)[::-1]
        scores[place, shown] = steps / 15
    write("ties", truth, scores)


def few():
    """Five images of three classes, of predictions with one class each."""
    truth = np.array([0, 0, 1, 1, 0])
    scores = np.zeros((5, 3))
    scores[np.arange(5), [0, 1, 1, 0, 0]] = [1.0, 0.0, 0.5, 0.75, 1.0]
    scores[1, [0, 2]] = -1  # Below the score of 0 that the second image has.
    write("few", truth, scores, kept=1)


def main():
    warnings.simplefilter("error")
    HERE.mkdir(exist_ok=True)
    plain()
    ties()
    few()


if __name__ == "__main__":
    main()
