#!/usr/bin/env python3
"""Writes cifar.json to its own folder with only NumPy: a classifier of CIFAR-10's classes by the mean color of an image,
images of one color each with their class in their names, and the accuracy and row-normalized confusion matrix of the
classifier's predictions."""

import json
from pathlib import Path

import numpy as np

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
rng = np.random.default_rng(32)
# A class has a color, and is predicted for similar ones: the nearest one has the largest x·c - |c|²/2.
colors = rng.integers(20, 236, (10, 3))
weights = np.vstack([2 * colors.T, -np.sum(colors**2, axis=1)]) / 2000.0
truth = rng.integers(0, 10, 48)
images = np.clip(colors[truth] + rng.normal(0, 40, (48, 3)).round(), 0, 255).astype(int)
logits = np.hstack([images, np.ones((48, 1))]) @ weights
predicted = logits.argmax(axis=1)
counts = np.zeros((10, 10))
np.add.at(counts, (truth, predicted), 1)
occurring = np.union1d(truth, predicted)
rows = counts[np.ix_(occurring, occurring)]
sums = rows.sum(axis=1, keepdims=True)
by_row = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
Path(__file__).with_name("cifar.json").write_text(
    json.dumps(
        {
            "weights": weights.tolist(),
            "images": [
                {"name": f"{number:04}_{CLASSES[label]}.png", "rgb": color.tolist(), "answer": CLASSES[found]}
                for number, (label, color, found) in enumerate(zip(truth, images, predicted))
            ],
            "correct": int(np.sum(truth == predicted)),
            "classes": [CLASSES[number] for number in occurring],
            "by_row": by_row.round(6).tolist(),
        },
        indent=0,
    )
    + "\n"
)
