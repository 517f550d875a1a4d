#!/usr/bin/env python3
"""Writes confusion.json beside itself: true and answered classes, with their accuracy and row-normalised confusion
matrix, by NumPy alone.

A class that is never true and one that is never answered are among them."""

import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(10)
truth = rng.choice([0, 1, 2, 3, 7], 200)
answer = np.where(rng.uniform(size=200) < 0.6, truth, rng.choice([0, 1, 2, 7, 9], 200))
classes = np.union1d(truth, answer)
counts = np.array([[np.sum((truth == row) & (answer == column)) for column in classes] for row in classes], np.float64)
sums = counts.sum(axis=1, keepdims=True)
by_row = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
Path(__file__).with_name("confusion.json").write_text(
    json.dumps(
        {
            "truth": truth.tolist(),
            "answer": answer.tolist(),
            "accuracy": float(np.mean(truth == answer)),
            "classes": classes.tolist(),
            "by_row": by_row.tolist(),
        }
    )
    + "\n"
)
