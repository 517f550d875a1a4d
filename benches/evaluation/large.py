"""Writes truth.json and run.spotcheck with 100,000 images with 100 detections each and 700,000 objects, to measure the
memory of an evaluation. The project is filled with SQL, because JSON of ten million detections takes minutes.

usage: python large.py PROJECT FOLDER

PROJECT is the run.spotcheck prepared by the bench; its tables and its run are used.
"""

import json
import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np

IMAGES, DETECTIONS, TRUTHS, CLASSES = 100_000, 100, 700_000, 80


def main():
    project, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    sizes = np.exp(random.normal(4, 0.9, (TRUTHS, 2))).clip(4, 470)
    boxes = np.hstack([random.uniform(0, 1, (TRUTHS, 2)) * (np.array([640, 480]) - sizes), sizes])
    of_image = np.sort(random.integers(0, IMAGES, TRUTHS))
    classes = random.integers(1, CLASSES + 1, TRUTHS)
    write_truth(folder / "truth.json", boxes, of_image, classes)
    shutil.copy(project, folder / "run.spotcheck")
    connection = sqlite3.connect(folder / "run.spotcheck")
    connection.execute("PRAGMA synchronous = OFF")
    for table in ["boxes", "answers", "samples"]:
        connection.execute(f"DELETE FROM {table}")
    first = np.searchsorted(of_image, np.arange(IMAGES + 1))
    for image in range(IMAGES):
        own = random.integers(first[image], max(first[image + 1], first[image] + 1), DETECTIONS) % TRUTHS
        origin = np.where(random.random(DETECTIONS) < 0.6, own, random.integers(0, TRUTHS, DETECTIONS))
        found = boxes[origin] + random.normal(0, 0.08, (DETECTIONS, 4)) * np.hstack([boxes[origin, 2:]] * 2)
        found[:, :2] = found[:, :2].clip(0, 470)
        found[:, 2:] = found[:, :2] + np.minimum(found[:, 2:].clip(2), np.array([640, 480]) - found[:, :2])
        is_right = random.random(DETECTIONS) < 0.85
        label = np.where(is_right, classes[origin], random.integers(1, CLASSES + 1, DETECTIONS)).astype("<u4")
        score = np.sort(random.random(DETECTIONS) ** 3 * 0.99 + 0.006)[::-1].astype("<f4")
        number = image + 1
        connection.execute("INSERT INTO samples VALUES (?, 1, ?)", (number, f"{image:06}.jpg"))
        row = (number, label.tobytes(), score.tobytes())
        connection.execute("INSERT INTO answers VALUES (1, ?, 2, 640, 480, ?, ?, NULL, 0, NULL, NULL, NULL)", row)
        connection.execute("INSERT INTO boxes VALUES (1, ?, ?)", (number, found.astype("<f4").tobytes()))
    connection.commit()


def write_truth(path, boxes, of_image, classes):
    images = [{"id": image + 1, "file_name": f"{image:06}.jpg", "width": 640, "height": 480} for image in range(IMAGES)]
    annotations = [
        {
            "id": place + 1,
            "image_id": int(of_image[place]) + 1,
            "category_id": int(classes[place]),
            "bbox": boxes[place].round(2).tolist(),
            "area": float(boxes[place, 2] * boxes[place, 3] * 0.7),
            "iscrowd": 0,
        }
        for place in range(TRUTHS)
    ]
    categories = [{"id": number, "name": f"class {number}"} for number in range(1, CLASSES + 1)]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


if __name__ == "__main__":
    main()
