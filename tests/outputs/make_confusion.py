#!/usr/bin/env python3
"""Writes confusion.json to its own folder with only NumPy: true and predicted classes, with their accuracy and
row-normalized confusion matrix.

One class is never true, and one is never predicted."""

import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(10)
truth = rng.choice([0, 1, 2, 3, 7], 200)
predicted = np.where(rng.uniform(size=200) < 0.6, truth, rng.choice([0, 1, 2, 7, 9], 200))
classes = np.union1d(truth, predicted)
counts = [[np.sum((truth == row) & (predicted == column)) for column in classes] for row in classes]
counts = np.array(counts, np.float64)
sums = counts.sum(axis=1, keepdims=True)
by_row = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
Path(__file__).with_name("confusion.json").write_text(
    json.dumps(
        {
            "truth": truth.tolist(),
            "answer": predicted.tolist(),
            "accuracy": float(np.mean(truth == predicted)),
            "classes": classes.tolist(),
            "by_row": by_row.tolist(),
        }
    )
    + "\n"
)
