#!/usr/bin/env python3
"""Makes `classification.json`: predictions of a classifier, and its metrics by scikit-learn and NumPy.

`python3 -m venv v && v/bin/pip install numpy==2.4.6 scikit-learn==1.9.1`, then `v/bin/python make_classification.py`.
"""

import json
import pathlib

import numpy as np
from sklearn import metrics
from sklearn.calibration import calibration_curve

HERE = pathlib.Path(__file__).parent
BINS = 15


def known(values):
    return [None if np.isnan(value) else float(value) for value in np.atleast_1d(values)]


def main():
    random = np.random.default_rng(7)
    images, classes = 400, 12
    truth = random.integers(0, classes - 1, images)  # No image shows the last class.
    logits = random.normal(0, 1.5, (images, classes))
    logits[np.arange(images), truth] += 1.8
    logits[:, 4] = -20  # Never predicted.
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    scores = np.round(scores, 7)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    best, top = order[:, 0], scores.max(1)
    labels = np.arange(classes)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, best, labels=labels, zero_division=np.nan
    )
    right = (best == truth).astype(int)
    accuracy, confidence = calibration_curve(right, top, n_bins=BINS)
    filled = np.histogram(top, np.linspace(0, 1, BINS + 1))[0]
    counts = filled[filled > 0]
    expected = {
        "top1": metrics.accuracy_score(truth, best),
        "top5": metrics.top_k_accuracy_score(truth, scores, k=5, labels=labels),
        "macro_precision": np.nanmean(precision),
        "macro_recall": np.nanmean(recall),
        "macro_f1": np.nanmean(f1),
        "ece": float((counts / images * np.abs(accuracy - confidence)).sum()),
        "precision": known(precision),
        "recall": known(recall),
        "f1": known(f1),
        "truths": support.tolist(),
        "confusion": metrics.confusion_matrix(truth, best, labels=labels).tolist(),
        "bins": [[int(count), a, c] for count, a, c in zip(counts, accuracy, confidence)],
    }
    predictions = [[[int(index), float(scores[place, index])] for index in row] for place, row in enumerate(order)]
    content = {"classes": classes, "truth": truth.tolist(), "predictions": predictions, "expected": expected}
    (HERE / "classification.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")
    print({name: value for name, value in expected.items() if isinstance(value, float)})


if __name__ == "__main__":
    main()
