#!/usr/bin/env python3
"""Writes cifar.json beside itself: outputs of a CIFAR-10 classifier for images that carry what they show in their
names, with accuracy and
row-normalised confusion matrix as a person would print them. By NumPy alone."""

import json
from pathlib import Path

import numpy as np

LABELS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
rng = np.random.default_rng(1010)
outputs, truth, answers = [], [], []
for number in range(60):
    true = int(rng.integers(10))
    logits = rng.normal(0, 1.5, 10)
    logits[true] += 1.5
    scores = np.exp(logits) / np.exp(logits).sum()
    scores = [float(f"{score:.8g}") for score in scores]
    outputs.append({"name": f"{number:04}_{LABELS[true]}.png", "output": {"predictions": [scores]}})
    truth.append(true)
    answers.append(int(np.argmax(scores)))
truth, answers = np.array(truth), np.array(answers)
classes = np.union1d(truth, answers)
counts = np.array([[np.sum((truth == row) & (answers == column)) for column in classes] for row in classes], np.float64)
by_row = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
correct = int(np.sum(truth == answers))
rows = [[LABELS[name], *(f"{share:.2f}" for share in row)] for name, row in zip(classes, by_row)]
Path(__file__).with_name("cifar.json").write_text(
    json.dumps({"outputs": outputs, "accuracy": f"{correct / 60 * 100:.2f} %, {correct} of 60", "rows": rows}) + "\n"
)
