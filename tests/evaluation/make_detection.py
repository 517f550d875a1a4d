#!/usr/bin/env python3
"""Creates the detection fixtures of this folder, with metrics by pycocotools, tidecv and NumPy.

Each folder gets `truth.json` (COCO), `results.json` (COCO results) and `expected.json`. Needs numpy, pycocotools and
tidecv: `python3 -m venv v && v/bin/pip install numpy==2.4.6 pycocotools==2.0.11 tidecv==1.0.1`, then
`v/bin/python make_detection.py`.
"""

import contextlib
import io
import json
import pathlib
import tempfile

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

HERE = pathlib.Path(__file__).parent
THRESHOLD = 0.5


def random_box(random, width, height, largest):
    w, h = random.uniform(2, largest, 2)
    x, y = random.uniform(0, width - w), random.uniform(0, height - h)
    return [float(value) for value in (x, y, w, h)]


def fixture(seed, image_count, category_ids, *, largest, crowds, ties, per_image):
    """Random objects; detections are moved, relabeled and duplicated copies of them, and background."""
    random = np.random.default_rng(seed)
    image_ids = random.permutation(np.arange(3, 3 + 7 * image_count, 7))
    images = [
        {"id": int(number), "file_name": f"{place:03}.jpg", "width": 640, "height": 480}
        for place, number in enumerate(image_ids)
    ]
    truths, results = [], []
    # The last category has no object, the one before no detection.
    with_objects, with_detections = category_ids[:-1], category_ids[:-2] + category_ids[-1:]
    for place, image in enumerate(images):
        if place % 9 == 8:
            if place % 2:
                results.append([image, with_detections[0], random_box(random, 640, 480, largest), 0.7])
            continue
        for _ in range(random.integers(1, per_image)):
            box = random_box(random, 640, 480, largest)
            category = int(random.choice(with_objects))
            is_crowd = bool(crowds and random.random() < 0.12)
            # The area of a mask is smaller than that of its box.
            area = box[2] * box[3] * float(random.uniform(0.5, 1.0))
            truths.append(
                {
                    "id": len(truths) + 1,
                    "image_id": image["id"],
                    "category_id": category,
                    "bbox": box,
                    "area": area,
                    "iscrowd": int(is_crowd),
                }
            )
            for _ in range(random.integers(0, 5 if is_crowd else 3)):
                moved = np.array(box) + random.normal(0, 0.06, 4) * np.array([box[2], box[3], box[2], box[3]])
                moved[2:] = np.maximum(moved[2:], 1.0)
                label = category if random.random() < 0.8 else int(random.choice(with_detections))
                if label in with_detections:
                    results.append([image, label, [float(value) for value in moved], float(random.random())])
        for _ in range(random.integers(0, 4)):
            box = random_box(random, 640, 480, largest)
            results.append([image, int(random.choice(with_detections)), box, float(random.random()) * 0.6])
    results = [
        {
            "image_id": image["id"],
            "category_id": category,
            "bbox": box,
            "score": round(score, 1) if ties else round(score, 5),
        }
        for image, category, box, score in results
    ]
    categories = [{"id": number, "name": f"class {number}"} for number in category_ids]
    return {"images": images, "annotations": truths, "categories": categories}, results


def touch_crowds(truth, results):
    """Adds detections that overlap a crowd of their class too little to be ignored: by 0.3 of their area, and by 0.4
    while they overlap an object of their class by a third."""
    for number, crowd in enumerate([one for one in truth["annotations"] if one["iscrowd"]]):
        x, y, width, height = crowd["bbox"]
        near = {"image_id": crowd["image_id"], "category_id": crowd["category_id"]}
        for shift in (0.7, 0.6):
            box, score = [x + shift * width, y, width, height], 0.91 + number / 1000 - shift / 10
            results.append(near | {"bbox": box, "score": score})
        box = [x + 1.1 * width, y, width, height]
        more = {"id": len(truth["annotations"]) + 1, "bbox": box, "area": width * height, "iscrowd": 0}
        truth["annotations"].append(near | more)
    return truth, results


def coco_numbers(truth, results):
    with contextlib.redirect_stdout(io.StringIO()):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(truth, file)
            file.flush()
            of_truth = COCO(file.name)
        evaluation = COCOeval(of_truth, of_truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"]
    classes = []
    for place, number in enumerate(evaluation.params.catIds):
        of_class = precision[:, :, place, 0, 2]
        known = of_class[of_class > -1]
        at_half = of_class[0][of_class[0] > -1]
        classes.append(
            {
                "id": int(number),
                "ap": float(known.mean()) if known.size else None,
                "ap50": float(at_half.mean()) if at_half.size else None,
                "precision_at_recall": at_half.tolist(),
            }
        )
    return [None if value == -1 else float(value) for value in evaluation.stats], classes, evaluation


def counts(evaluation, classes):
    """True positives, false positives and false negatives at IoU 0.5 and the threshold, and the best F1, per class and
    overall."""
    pooled = {"scores": [], "right": [], "truths": 0}
    for place, of_class in enumerate(classes):
        scores, right, truths = [], [], 0
        images = len(evaluation.params.imgIds)
        areas = len(evaluation.params.areaRng)
        for found in evaluation.evalImgs[place * areas * images : place * areas * images + images]:
            if found is None:
                continue
            counted = ~found["dtIgnore"][0].astype(bool)
            scores += list(np.array(found["dtScores"])[counted])
            right += list((found["dtMatches"][0] > 0)[counted])
            truths += int((~found["gtIgnore"].astype(bool)).sum())
        of_class.update(at(THRESHOLD, scores, right, truths), truths=truths, detections=len(scores))
        of_class["best_f1"] = best_f1(scores, right, truths)
        of_class["curve"] = curve(scores, right, truths)
        pooled["scores"] += scores
        pooled["right"] += right
        pooled["truths"] += truths
    total = at(THRESHOLD, pooled["scores"], pooled["right"], pooled["truths"])
    total["best_f1"] = best_f1(pooled["scores"], pooled["right"], pooled["truths"])
    total["curve"] = curve(pooled["scores"], pooled["right"], pooled["truths"])
    return total


def at(threshold, scores, right, truths):
    shown = np.array(scores) >= threshold
    correct = int(np.array(right, bool)[shown].sum())
    found = int(shown.sum())
    return {
        "precision": correct / found if found else None,
        "recall": correct / truths if truths else None,
        "f1": 2 * correct / (found + truths) if found + truths else None,
    }


def best_f1(scores, right, truths):
    values = [at(score, scores, right, truths)["f1"] for score in set(scores)]
    best = max(values, default=0)
    return best or None


def curve(scores, right, truths):
    """Threshold, precision, recall and F1 at each score; nothing without objects."""
    points = [(score, at(score, scores, right, truths)) for score in sorted(set(scores), reverse=True)]
    return [
        [score, *(round(numbers[name], 7) for name in ("precision", "recall", "f1"))]
        for score, numbers in points
        if truths
    ]


def iou(one, other):
    left, top = max(one[0], other[0]), max(one[1], other[1])
    right, bottom = min(one[0] + one[2], other[0] + other[2]), min(one[1] + one[3], other[1] + other[3])
    shared = max(right - left, 0) * max(bottom - top, 0)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared)


def voc_numbers(truth, results):
    """AP of Pascal VOC 2007 and 2012 by class; crowds are its difficult objects."""
    numbers = {}
    order = {image["id"]: place for place, image in enumerate(sorted(truth["images"], key=lambda one: one["id"]))}
    for category in truth["categories"]:
        objects = {}
        for found in truth["annotations"]:
            if found["category_id"] == category["id"]:
                objects.setdefault(found["image_id"], []).append([found["bbox"], found["iscrowd"], False])
        positives = sum(not crowd for found in objects.values() for _, crowd, _ in found)
        if not positives:
            numbers[category["id"]] = None
            continue
        detections = [found for found in results if found["category_id"] == category["id"]]
        detections.sort(key=lambda found: (-found["score"], order[found["image_id"]]))
        right = []
        for found in detections:
            candidates = objects.get(found["image_id"], [])
            overlaps = [voc_overlap(found["bbox"], one) for one in candidates]
            best = int(np.argmax(overlaps)) if overlaps else None
            if best is None or overlaps[best] < 0.5:
                right.append(False)
            elif candidates[best][1]:
                continue
            else:
                right.append(not candidates[best][2])
                candidates[best][2] = True
        tp = np.cumsum(right)
        recall = tp / positives
        precision = tp / np.arange(1, len(tp) + 1)
        eleven = [precision[recall >= tenth / 10].max(initial=0) for tenth in range(11)]
        bounds = np.concatenate([[0], recall, [1]])
        envelope = np.maximum.accumulate(np.concatenate([[0], precision, [0]])[::-1])[::-1]
        steps = np.where(bounds[1:] != bounds[:-1])[0]
        area = ((bounds[steps + 1] - bounds[steps]) * envelope[steps + 1]).sum()
        numbers[category["id"]] = [float(np.mean(eleven)), float(area)]
    return numbers


def voc_overlap(box, candidate):
    """The overlap with a crowd is the fraction of the detection that it covers."""
    other, crowd, _ = candidate
    if not crowd:
        return iou(box, other)
    left, top = max(box[0], other[0]), max(box[1], other[1])
    right, bottom = min(box[0] + box[2], other[0] + other[2]), min(box[1] + box[3], other[1] + other[3])
    return max(right - left, 0) * max(bottom - top, 0) / (box[2] * box[3])


def excused(evaluation, results):
    """The results ignored because of a crowd at IoU 0.50."""
    ids = set()
    for image in evaluation.evalImgs:
        if image is not None and image["aRng"] == evaluation.params.areaRng[0]:
            ids |= {dt for dt, ignored in zip(image["dtIds"], image["dtIgnore"][0]) if ignored}
    return [one for number, one in enumerate(results, 1) if number in ids]


def tide_numbers(truth, results, evaluation):
    from tidecv import TIDE, Data

    of_truth, found = Data("truth"), Data("found")
    for category in truth["categories"]:
        of_truth.add_class(category["id"], category["name"])
    # Equal scores are ordered by position.
    for image in sorted(truth["images"], key=lambda one: one["id"]):
        of_truth.add_image(image["id"], image["file_name"])
    # tidecv counts and fixes detections that match a crowd, unlike its own AP and COCO's, so it gets neither crowds nor
    # those detections.
    for one in truth["annotations"]:
        if not one["iscrowd"]:
            of_truth.add_ground_truth(one["image_id"], one["category_id"], one["bbox"])
    without = excused(evaluation, results)
    results = [one for one in results if one not in without]
    for one in sorted(results, key=lambda one: one["image_id"]):
        found.add_detection(one["image_id"], one["category_id"], one["score"], one["bbox"])
    tide = TIDE()
    run = tide.evaluate(of_truth, found, mode=TIDE.BOX)
    names = {
        "Cls": "class",
        "Loc": "location",
        "Both": "both",
        "Dupe": "duplicate",
        "Bkg": "background",
        "Miss": "missed",
    }
    # tidecv counts classes with detections but no object, with AP 0; COCO and Spotcheck omit them.
    with_objects = {one["category_id"] for one in truth["annotations"] if not one["iscrowd"]}
    counted = with_objects | {one["category_id"] for one in truth["annotations"] + results}
    percent = 100 * len(with_objects) / len(counted)
    costs = {names[kind.short_name]: cost / percent for kind, cost in run.fix_main_errors().items()}
    kinds = {names[kind.short_name]: len(errors) for kind, errors in run.error_dict.items() if kind.short_name in names}
    # With equal scores, tidecv's AP differs from COCO's, so it is omitted.
    with_ties = len({one["score"] for one in results}) < len(results) / 2
    return None if with_ties else {"costs": costs, "counts": kinds}


def write(name, truth, results):
    stats, classes, evaluation = coco_numbers(truth, results)
    total = counts(evaluation, classes)
    voc = voc_numbers(truth, results)
    for of_class in classes:
        of_class["voc"] = voc[of_class["id"]]
    expected = {"stats": stats, "threshold": THRESHOLD, **total, "classes": classes}
    expected["tide"] = tide_numbers(truth, results, evaluation)
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    for file, content in {"truth": truth, "results": results, "expected": expected}.items():
        (folder / f"{file}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")
    print(name, len(truth["annotations"]), "objects", len(results), "detections", stats[:3])


def main():
    crowded = fixture(1, 60, [1, 2, 5, 9, 17, 90], largest=220, crowds=True, ties=False, per_image=7)
    write("crowds", *crowded)
    touched = fixture(6, 40, [1, 2, 3, 4], largest=200, crowds=True, ties=False, per_image=6)
    write("touched_crowds", *touch_crowds(*touched))
    write("ties", *fixture(2, 50, [3, 4, 7, 8, 11], largest=160, crowds=True, ties=True, per_image=9))
    write("small", *fixture(3, 40, [0, 1, 2, 3], largest=60, crowds=False, ties=False, per_image=14))
    write("plain", *fixture(5, 60, list(range(1, 13)), largest=240, crowds=False, ties=False, per_image=8))
    truth, results = fixture(4, 20, [1, 2, 3], largest=200, crowds=False, ties=False, per_image=4)
    write("one_detection", truth, results[:1])


if __name__ == "__main__":
    main()
