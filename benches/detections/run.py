"""Milliseconds from a detector's output to boxes after non-maximum suppression: Spotcheck, torchvision and OpenCV in
one run.

usage: python run.py --spotcheck PATH_OF_THE_BENCH [--rounds 200]

One thread each; the fastest round of each counts, because slower ones are due to the computer. README.md describes the
measurement.
"""
import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
import torch
import torchvision

CANDIDATES, CLASSES = 8400, 80
MIN_SCORE, MAX_IOU = 0.005, 0.7


def output(random, objects):
    """`[4 + CLASSES, CANDIDATES]`: objects found by thirty candidates each, and weak scores everywhere; or, without
    objects, candidates that all count."""
    boxes = np.concatenate([random.uniform(0, 640, (2, CANDIDATES)), random.uniform(16, 200, (2, CANDIDATES))])
    if objects is None:
        return np.concatenate([boxes, random.uniform(0, 1, (CLASSES, CANDIDATES))])
    scores = random.uniform(0, 0.012, (CLASSES, CANDIDATES)) ** 1.6
    for _ in range(objects):
        own = random.integers(0, CANDIDATES, 30)
        box = np.concatenate([random.uniform(100, 540, 2), random.uniform(40, 300, 2)])
        boxes[:, own] = box[:, None] * random.normal(1, 0.04, (4, 30))
        scores[random.integers(0, CLASSES), own] = random.uniform(0.05, 0.95, 30)
    return np.concatenate([boxes, scores])


def with_torchvision(values):
    values = torch.from_numpy(values)
    scores, classes = values[4:].max(0)
    kept = scores >= MIN_SCORE
    scores, classes = scores[kept], classes[kept]
    x, y, width, height = values[:4, kept]
    boxes = torch.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1)
    boxes = boxes * 1.5 + torch.tensor([0.0, -60.0, 0.0, -60.0])
    left = torchvision.ops.batched_nms(boxes, scores, classes, MAX_IOU)
    return boxes[left], classes[left], scores[left]


def with_opencv(values):
    classes = values[4:].argmax(0)
    scores = values[4:].max(0)
    kept = scores >= MIN_SCORE
    scores, classes = scores[kept], classes[kept]
    x, y, width, height = values[:4, kept] * 1.5
    boxes = np.stack([x - width / 2, y - height / 2 - 60, width, height], 1)
    left = cv2.dnn.NMSBoxesBatched(boxes, scores, classes, MIN_SCORE, MAX_IOU)
    return boxes[left], classes[left], scores[left]


def fastest_ms(work, values, rounds):
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        _, _, scores = work(values)
        best = min(best, time.perf_counter() - begun)
    return best * 1e3, len(scores)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spotcheck", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    random = np.random.default_rng(1)
    cases = {"10 objects": output(random, 10), "100 objects": output(random, 100), "all count": output(random, None)}
    with tempfile.TemporaryDirectory() as folder:
        for number, values in enumerate(cases.values()):
            values.astype("<f4").tofile(Path(folder) / f"{number}.f32")
        command = [options.spotcheck, folder, str(options.rounds)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    for (name, values), line in zip(cases.items(), lines, strict=True):
        values, spotcheck = values.astype(np.float32), json.loads(line)
        peers = {"torchvision": fastest_ms(with_torchvision, values, options.rounds),
                 "OpenCV": fastest_ms(with_opencv, values, options.rounds)}
        print(f"{name}: {spotcheck['boxes']} boxes, {spotcheck['left']} left")
        print(f"  Spotcheck    {spotcheck['ms']:7.3f} ms ({spotcheck['selected_ms']:.3f} without suppression)")
        for peer, (ms, left) in peers.items():
            print(f"  {peer:<12} {ms:7.3f} ms, {left} left; Spotcheck takes {spotcheck['ms'] / ms:.2f} of it")


main()
