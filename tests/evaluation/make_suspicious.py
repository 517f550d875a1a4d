#!/usr/bin/env python3
"""Finds the suspicious labels of each detection fixture, and writes them to its `suspicious.json`.

The gain is the AP of pycocotools with only this label fixed, minus the AP before. The label and image quality are
computed by cleanlab (ObjectLab), the mistakenness by FiftyOne, which needs no database for it. `python3 -m venv v &&
v/bin/pip install numpy==2.4.6 pycocotools==2.0.11 cleanlab==2.9.0 fiftyone==1.22.1 fiftyone-brain==0.25.0`, then
`v/bin/python make_suspicious.py`.
"""

import contextlib
import copy
import io
import json
import math
import pathlib

import numpy as np
from cleanlab.object_detection import rank
from fiftyone.brain.internal.core import mistakenness as fiftyone
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

HERE = pathlib.Path(__file__).parent
THRESHOLD = 0.5


class Measure:
    """The AP of fixed predictions against any labels."""

    def __init__(self, truth, results):
        self.truth = truth
        self.found = self.coco(truth).loadRes(copy.deepcopy(results))

    @staticmethod
    def coco(truth):
        coco = COCO()
        coco.dataset = copy.deepcopy(truth)
        coco.createIndex()
        return coco

    def ap(self, annotations):
        evaluation = COCOeval(self.coco(self.truth | {"annotations": annotations}), self.found, "bbox")
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.evaluate()
        evaluation.accumulate()
        precision = evaluation.eval["precision"][:, :, :, 0, 2]
        return float(precision[precision > -1].mean())


def iou(found, label):
    left, top = max(found[0], label[0]), max(found[1], label[1])
    right = min(found[0] + found[2], label[0] + label[2])
    bottom = min(found[1] + found[3], label[1] + label[3])
    shared = max(right - left, 0) * max(bottom - top, 0)
    return shared / (found[2] * found[3] + label[2] * label[3] - shared)


def covered(found, label):
    """The IoU, or for a crowd, the covered fraction of the detection."""
    if not label["iscrowd"]:
        return iou(found, label["bbox"])
    x, y, width, height = label["bbox"]
    across = min(found[0] + found[2], x + width) - max(found[0], x)
    down = min(found[1] + found[3], y + height) - max(found[1], y)
    return max(across, 0) * max(down, 0) / (found[2] * found[3])


def suspicions(labels, results):
    """Kind, index of the detection and index of the label, for one image."""
    order = sorted(range(len(results)), key=lambda index: -results[index]["score"])
    overlaps = [[covered(found["bbox"], label) for label in labels] for found in results]
    is_same = [[found["category_id"] == label["category_id"] for label in labels] for found in results]
    counts = [not label["iscrowd"] for label in labels]
    taken, matched = set(), {}
    for index in order:
        for wanted in (True, False):
            free = [
                at
                for at in range(len(labels))
                if is_same[index][at] and counts[at] == wanted and overlaps[index][at] >= 0.5
                and (at not in taken or not wanted)
            ]
            if free:
                # The last one on a tie.
                matched[index] = max(free, key=lambda at: (overlaps[index][at], at))
                taken.add(matched[index])
                break
    shown = [index for index in order if results[index]["score"] >= THRESHOLD]
    detected = {matched[index] for index in shown if index in matched and counts[matched[index]]}
    suspicious, missing, found = set(), [], []
    for index in shown:
        same = [overlaps[index][at] for at in range(len(labels)) if is_same[index][at] and counts[at]]
        other = {at: overlaps[index][at] for at in range(len(labels)) if not is_same[index][at] and counts[at]}
        nearest_other = max(other, key=other.get, default=None)
        if index in matched:
            at = matched[index]
            if not counts[at] or overlaps[index][at] >= 0.75:
                continue
            kind = "misplaced"
        elif 0.1 <= max(same, default=0) <= 0.5:
            of_class = [at for at in range(len(labels)) if is_same[index][at] and counts[at]]
            at, kind = max(of_class, key=lambda at: overlaps[index][at]), "misplaced"
            if at in detected:
                continue
        elif nearest_other is not None and other[nearest_other] >= 0.5:
            at, kind = nearest_other, "class"
            if at in detected or max(same, default=0) >= 0.1:
                continue
        elif max(same, default=0) < 0.1 and (nearest_other is None or other[nearest_other] <= 0.1):
            if all(iou(results[index]["bbox"], results[before]["bbox"]) < 0.5 for before in missing):
                missing.append(index)
                found.append(("missing", index, None))
            continue
        else:
            continue
        if at not in suspicious:
            suspicious.add(at)
            found.append((kind, index, at))
    for at in range(len(labels)):
        if counts[at] and at not in suspicious and all(row[at] < 0.5 for row in overlaps):
            found.append(("spurious", None, at))
    return found


def fixed(annotations, kind, label, found):
    """The annotations after the fix."""
    annotations = copy.deepcopy(annotations)
    if kind == "missing":
        area = found["bbox"][2] * found["bbox"][3]
        more = {"id": len(annotations) + 1, "area": area, "iscrowd": 0}
        annotations.append(more | {name: found[name] for name in ("image_id", "category_id", "bbox")})
        return annotations
    at = next(at for at, one in enumerate(annotations) if one["id"] == label["id"])
    if kind == "spurious":
        del annotations[at]
    elif kind == "class":
        annotations[at]["category_id"] = found["category_id"]
    else:
        annotations[at]["bbox"] = found["bbox"]
    return annotations


def mistakenness(kind, score, overlap):
    """FiftyOne's; it matches from an IoU of 0.5 on, so a label below counts as not overlapping at all."""
    if kind == "class":
        return fiftyone._compute_mistakenness_class_conf(score, 0.0)
    if kind == "misplaced":
        return fiftyone._compute_mistakenness_loc_conf(score, max(overlap, fiftyone._DETECTION_IOU))
    return None


def quality(kind, labels, results, index, at):
    """ObjectLab's score of the label, or of the box without a label."""
    def edges(boxes):
        return np.array([[x, y, x + width, y + height] for x, y, width, height in boxes]).reshape(-1, 4)

    inputs = {
        "alpha": 0.9,
        "lab_labels": np.array([label["category_id"] for label in labels]),
        "lab_bboxes": edges([label["bbox"] for label in labels]),
        "pred_labels": np.array([found["category_id"] for found in results]),
        "pred_label_probs": np.array([found["score"] for found in results]),
        "pred_bboxes": edges([found["bbox"] for found in results]),
        "min_possible_similarity": 0.0,
    }
    if kind == "class":
        return float(
            rank._compute_swap_box_scores_for_image(
                high_probability_threshold=0.95, overlapping_label_check=False, **inputs
            )[at]
        )
    if kind == "misplaced":
        return float(rank._compute_badloc_box_scores_for_image(low_probability_threshold=0.5, **inputs)[at])
    if kind == "missing":
        score = rank._compute_overlooked_box_scores_for_image(high_probability_threshold=0.95, **inputs)[index]
        return None if math.isnan(score) else float(score)
    return None


def image_quality(labels, results):
    """ObjectLab's score of the image, with 0 as the lowest similarity."""
    def edges(box):
        x, y, width, height = box
        return [x, y, x + width, y + height]

    classes = sorted({one["category_id"] for one in labels + results})
    label = {
        "bboxes": np.array([edges(one["bbox"]) for one in labels]).reshape(-1, 4),
        "labels": np.array([classes.index(one["category_id"]) for one in labels], dtype=int),
    }
    found = [
        np.array([edges(one["bbox"]) + [one["score"]] for one in results if one["category_id"] == name]).reshape(-1, 5)
        for name in classes
    ]
    rank._get_min_possible_similarity = lambda *_: 0.0
    return float(
        rank._get_subtype_label_quality_scores(labels=[label], predictions=[found], overlapping_label_check=True)[0]
    )


def write(folder):
    truth, results = (json.loads((folder / f"{name}.json").read_text()) for name in ("truth", "results"))
    with contextlib.redirect_stdout(io.StringIO()):
        measure = Measure(truth, results)
        before = measure.ap(truth["annotations"])
        rows = []
        # Images count from 0, in the order of their ids.
        for number, image in enumerate(sorted(truth["images"], key=lambda one: one["id"])):
            of_image = [
                [one for one in side if one["image_id"] == image["id"]] for side in (truth["annotations"], results)
            ]
            labels, detections = of_image
            for kind, index, at in suspicions(labels, detections):
                found = None if index is None else detections[index]
                label = None if at is None else labels[at]
                overlap = iou(found["bbox"], label["bbox"]) if found and label else None
                rows.append(
                    {
                        "image": number,
                        "kind": kind,
                        "label": at,
                        "found": index,
                        "gain": measure.ap(fixed(truth["annotations"], kind, label, found)) - before,
                        "mistakenness": mistakenness(kind, found["score"] if found else None, overlap),
                        "quality": quality(kind, labels, detections, index, at),
                        "image_quality": image_quality(labels, detections),
                    }
                )
    (folder / "suspicious.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")
    kinds = [row["kind"] for row in rows]
    print(folder.name, {kind: kinds.count(kind) for kind in sorted(set(kinds))}, max(row["gain"] for row in rows))


def main():
    for results in sorted(HERE.glob("*/results.json")):
        write(results.parent)


if __name__ == "__main__":
    main()
