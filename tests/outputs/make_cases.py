#!/usr/bin/env python3
"""Writes cases.json to its own folder: outputs of third-party containers, and their meaning, computed only with
NumPy.

Independent of Spotcheck's own code. Random numbers come from a fixed seed."""

import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(20261121)
TOP_K = 5


def softmax(logits):
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def top(scores, background=0):
    """The best classes, with the background skipped and subtracted."""
    scores = np.asarray(scores, np.float64)[background:]
    order = np.argsort(-scores, kind="stable")[:TOP_K]
    return [{"index": int(index), "score": float(np.float32(scores[index]))} for index in order]


def short(values):
    """Like a container that prints 32-bit floats."""
    return [float(f"{value:.8g}") for value in np.asarray(values, np.float64).ravel()]


def case(name, output, size, **expected):
    return {"name": name, "output": json.dumps(output), "size": size, **expected}


resnet = short(softmax(rng.normal(0, 4, 1001)))
resnet_best = int(np.argmax(resnet))
cifar = short(rng.normal(0, 3, 10))
sure = short(softmax(rng.normal(0, 3, 10)))

width, height = 640, 427
corners = np.sort(rng.uniform(-0.02, 1.02, (6, 2, 2)), axis=1)
boxes = [[float(f"{edge:.7g}") for edge in (box[0][0], box[0][1], box[1][0], box[1][1])] for box in corners]
scores = short(np.sort(rng.uniform(0.1, 1, 6))[::-1])
classes = [float(value) for value in rng.integers(1, 91, 6)]
count = 4


def detections(order):
    found = []
    for index in order:
        top_edge, left, bottom, right = boxes[index]
        found.append(
            {
                "box": [left * width, top_edge * height, right * width, bottom * height],
                "class_id": int(classes[index]),
                "score": scores[index],
            }
        )
    return sorted(found, key=lambda each: -each["score"])


of_tf = {"detection_boxes": boxes, "detection_classes": classes, "detection_scores": scores}
cases = [
    case(
        "resnet of TensorFlow Serving",
        {"predictions": [{"probabilities": resnet, "classes": resnet_best}]},
        [500, 375],
        shape="TensorFlow Serving classifier",
        labels="imagenet",
        classes=top(resnet, 1),
    ),
    case(
        "the same by columns",
        {"outputs": {"probabilities": [resnet], "classes": [resnet_best]}},
        [500, 375],
        shape="TensorFlow Serving classifier",
        labels="imagenet",
        classes=top(resnet, 1),
    ),
    case(
        "ten logits",
        {"predictions": [cifar]},
        [32, 32],
        shape="List of scores",
        labels=None,
        classes=top(softmax(np.array(cifar))),
    ),
    case(
        "ten probabilities", {"predictions": [sure]}, [32, 32], shape="List of scores", labels=None, classes=top(sure)
    ),
    case("a list of a list", [sure], [32, 32], shape="List of scores", labels=None, classes=top(sure)),
    case(
        "one named output",
        {"predictions": [{"dense/1": sure}]},
        [32, 32],
        shape="List of scores",
        labels=None,
        classes=top(sure),
    ),
    case(
        "joined with its input",
        {"id": 7, "SageMakerOutput": {"predictions": [sure]}},
        [32, 32],
        shape="List of scores",
        labels=None,
        classes=top(sure),
    ),
    case(
        "object detection",
        {"predictions": [{**of_tf, "num_detections": float(count)}]},
        [width, height],
        shape="TensorFlow Object Detection",
        labels=None,
        detections=detections(range(count)),
    ),
    case(
        "object detection without a count",
        {"predictions": [of_tf]},
        [width, height],
        shape="TensorFlow Object Detection",
        labels=None,
        detections=detections(range(6)),
    ),
    case(
        "object detection by columns",
        {"outputs": {**{key: [value] for key, value in of_tf.items()}, "num_detections": [4.0]}},
        [width, height],
        shape="TensorFlow Object Detection",
        labels=None,
        detections=detections(range(count)),
    ),
]
Path(__file__).with_name("cases.json").write_text(json.dumps(cases, indent=1) + "\n")
