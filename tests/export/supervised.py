"""Shared by the readers of folders: a dataset of supervision as JSON."""

import json
import os


def print_dataset(dataset):
    boxes = []
    for path, _, detections in dataset:
        for edges, class_id in zip(detections.xyxy.tolist(), detections.class_id):
            boxes.append([os.path.basename(path), dataset.classes[class_id], *edges])
    print(json.dumps({"images": len(dataset), "classes": dataset.classes, "boxes": boxes}))
