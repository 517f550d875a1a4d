#!/usr/bin/env python3
"""Writes cifar.json to its own folder with only NumPy: outputs of a CIFAR-10 classifier for images whose names contain
their true class, with the accuracy and the row-normalized confusion matrix as a person would print them."""

import json
from pathlib import Path

import numpy as np

LABELS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
rng = np.random.default_rng(1010)
outputs, truth, predicted = [], [], []
for number in range(60):
    true = int(rng.integers(10))
    logits = rng.normal(0, 1.5, 10)
    logits[true] += 1.5
    scores = np.exp(logits) / np.exp(logits).sum()
    scores = [float(f"{score:.8g}") for score in scores]
    outputs.append({"name": f"{number:04}_{LABELS[true]}.png", "output": {"predictions": [scores]}})
    truth.append(true)
    predicted.append(int(np.argmax(scores)))
truth, predicted = np.array(truth), np.array(predicted)
classes = np.union1d(truth, predicted)
counts = [[np.sum((truth == row) & (predicted == column)) for column in classes] for row in classes]
counts = np.array(counts, np.float64)
by_row = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
correct = int(np.sum(truth == predicted))
rows = [[LABELS[name], *(f"{share:.2f}" for share in row)] for name, row in zip(classes, by_row)]
Path(__file__).with_name("cifar.json").write_text(
    json.dumps({"outputs": outputs, "accuracy": f"{correct / 60 * 100:.2f}% ({correct} of 60)", "rows": rows}) + "\n"
)
