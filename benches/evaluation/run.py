"""Seconds from predictions and ground truth to COCO metrics: Spotcheck from its project file, hotcoco alone,
pycocotools, faster-coco-eval and hotcoco for Python, in one run.

usage: python run.py --spotcheck PATH_OF_THE_PROGRAM --bench PATH_OF_THE_BENCH [--rounds 3]

The fastest round of each counts. README.md describes the measurement.
"""

import argparse
import contextlib
import io
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

IMAGES, TRUTHS, DETECTIONS, CLASSES = 5000, 36_000, 500_000, 80


def make(folder):
    """Objects with COCO's sizes; six detections in ten near one of them, the others anywhere."""
    random = np.random.default_rng(1)
    images = [
        {"id": number + 1, "file_name": f"{number:06}.jpg", "width": 640, "height": 480} for number in range(IMAGES)
    ]
    sizes = np.exp(random.normal(4, 0.9, (TRUTHS, 2))).clip(4, 470)
    corners = random.uniform(0, 1, (TRUTHS, 2)) * (np.array([640, 480]) - sizes)
    boxes = np.hstack([corners, sizes])
    of_image = random.integers(1, IMAGES + 1, TRUTHS)
    classes = random.integers(1, CLASSES + 1, TRUTHS)
    truths = [
        {
            "id": place + 1,
            "image_id": int(of_image[place]),
            "category_id": int(classes[place]),
            "bbox": boxes[place].round(2).tolist(),
            "area": float(boxes[place, 2] * boxes[place, 3] * 0.7),
            "iscrowd": int(place % 100 == 0),
        }
        for place in range(TRUTHS)
    ]
    near = random.random(DETECTIONS) < 0.6
    origin = random.integers(0, TRUTHS, DETECTIONS)
    found = np.where(near[:, None], boxes[origin], boxes[random.permutation(origin)])
    found = found + random.normal(0, 0.08, (DETECTIONS, 4)) * np.hstack([found[:, 2:], found[:, 2:]])
    found[:, :2] = found[:, :2].clip(0, 470)
    found[:, 2:] = np.minimum(found[:, 2:].clip(2), np.array([640, 480]) - found[:, :2])
    image = np.where(near, of_image[origin], random.integers(1, IMAGES + 1, DETECTIONS))
    label = np.where(random.random(DETECTIONS) < 0.85, classes[origin], random.integers(1, CLASSES + 1, DETECTIONS))
    score = random.random(DETECTIONS) ** 3 * 0.99 + 0.006
    found, score = found.astype(np.float32).astype(float), score.astype(np.float32).astype(float)
    results = [
        {
            "image_id": int(image[place]),
            "category_id": int(label[place]),
            "bbox": found[place].tolist(),
            "score": float(score[place]),
        }
        for place in range(DETECTIONS)
    ]
    categories = [{"id": number, "name": f"class {number}"} for number in range(1, CLASSES + 1)]
    truth = {"images": images, "annotations": truths, "categories": categories}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))


def with_spotcheck(program, folder, inputs):
    out = folder / "metrics.json"
    out.unlink(missing_ok=True)
    start = time.perf_counter()
    command = [program, "evaluate", "--truth", folder / "truth.json", *inputs, "--nms-iou", "off"]
    if "--predictions" in inputs:
        command = command[:-2]
    subprocess.run([*command, "--draws", "0", "--out", out], check=True, capture_output=True)
    return time.perf_counter() - start, json.loads(out.read_text())["ap"]


def with_python(folder, library):
    if library == "pycocotools":
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    elif library == "faster-coco-eval":
        from faster_coco_eval import COCO
        from faster_coco_eval import COCOeval_faster as COCOeval
    else:
        from hotcoco import COCO, COCOeval
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        truth = COCO(str(folder / "truth.json"))
        load = getattr(truth, "loadRes", None) or truth.load_res
        evaluation = COCOeval(truth, load(str(folder / "results.json")), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return time.perf_counter() - start, float(evaluation.stats[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spotcheck", required=True)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        make(folder)
        subprocess.run([arguments.bench, "prepare", folder], check=True)
        print("project:", (folder / "run.spotcheck").stat().st_size / 1e6, "MB")

        def alone():
            output = subprocess.run([arguments.bench, "hotcoco", folder], check=True, capture_output=True, text=True)
            seconds, tide, ap = map(float, output.stdout.split())
            return seconds, ap, tide

        peers = {
            "hotcoco alone (Rust, JSON)": alone,
            "Spotcheck, project": lambda: with_spotcheck(
                arguments.spotcheck, folder, ["--project", folder / "run.spotcheck"]
            ),
            "Spotcheck, COCO results": lambda: with_spotcheck(
                arguments.spotcheck, folder, ["--predictions", folder / "results.json"]
            ),
            "hotcoco (Python)": lambda: with_python(folder, "hotcoco"),
            "faster-coco-eval": lambda: with_python(folder, "faster-coco-eval"),
            "pycocotools": lambda: with_python(folder, "pycocotools"),
        }
        best = {}
        for _ in range(arguments.rounds):
            for name, run in peers.items():
                measured = run()
                best[name] = min(best.get(name, measured), measured)
        base = best["hotcoco alone (Rust, JSON)"]
        print(f"errors of TIDE by hotcoco: {base[2]:.2f} s more")
        for name, (seconds, ap, *_) in best.items():
            print(f"{name:28} {seconds:7.2f} s  {seconds / base[0]:6.2f}  AP {ap!r}")


if __name__ == "__main__":
    main()
