"""Writes expected.json into each case folder: what independent readers make of the files.

    pip install pycocotools==2.0.11
    python tests/cases/annotations/make.py

A case is a folder with a file or a folder of annotations. Data sets and results of COCO are read with json and, where
every entry is usable (no problems.json), compared with pycocotools. problems.json is written by hand: what is said of
the entries that cannot be used.
"""

import contextlib
import io
import json
import math
from pathlib import Path

HERE = Path(__file__).parent


def number_or_text(value):
    """The id of an image or class; None if it is none."""
    if isinstance(value, bool) or value in (None, ""):
        return None
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    if isinstance(value, str):
        return int(value) if value.lstrip("-").isdigit() and str(int(value)) == value else value
    return None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def coco_box(raw, has_scores):
    """None if the entry cannot be used."""
    bbox = raw.get("bbox")
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(map(is_number, bbox)) or min(bbox[2:]) < 0:
        return None
    score = raw.get("score")
    if has_scores and not (is_number(score) and 0 <= score <= 1):
        return None
    area = raw.get("area")
    role = "crowd" if raw.get("iscrowd") else "ignored" if raw.get("ignore") else "object"
    return {"bounds": [float(side) for side in bbox], "score": score, "area": area if is_number(area) else None,
            "role": role}


def coco(file):
    document = json.loads(file.read_bytes().decode("utf-8-sig"))
    if isinstance(document, list):
        return coco_results(document)
    objects = lambda key: [entry for entry in document.get(key, []) if isinstance(entry, dict)]
    classes, images = {}, {}
    for raw in objects("categories"):
        if (number := number_or_text(raw.get("id"))) is not None:
            classes[number] = {"number": number if isinstance(number, int) else None, "name": raw["name"]}
    for raw in objects("images"):
        if (number := number_or_text(raw.get("id"))) is not None:
            name = raw.get("file_name") or "/".join(raw.get("coco_url", "").split("/")[3:])
            size = [raw.get("width"), raw.get("height")]
            size = size if all(map(is_number, size)) else None
            images[number] = {"id": number, "name": name.replace("\\", "/").removeprefix("./"), "size": size,
                              "boxes": []}
    places = {number: place for place, number in enumerate(classes)}
    annotations = objects("annotations")
    has_scores = any("score" in raw for raw in annotations)
    for raw in annotations:
        image = images.get(number_or_text(raw.get("image_id")))
        place = places.get(number_or_text(raw.get("category_id")))
        box = coco_box(raw, has_scores)
        if image is not None and place is not None and box is not None:
            image["boxes"].append({"class": place} | box)
    return {"classes": list(classes.values()), "images": list(images.values())}


def coco_results(entries):
    classes, images = {}, {}
    for raw in entries:
        box = coco_box(raw, True)
        if box is None:
            continue
        number = number_or_text(raw["image_id"])
        image = images.setdefault(number, {"id": number, "name": "", "size": None, "boxes": []})
        place = classes.setdefault(raw["category_id"], len(classes))
        image["boxes"].append({"class": place} | box)
    return {"classes": [{"number": number, "name": None} for number in classes], "images": list(images.values())}


def check_with_pycocotools(file, expected):
    from pycocotools.coco import COCO

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(file))
    names = [truth.cats[number]["name"] for number in truth.getCatIds()]
    assert names == [one["name"] for one in expected["classes"]], names
    assert truth.getImgIds() == [image["id"] for image in expected["images"]]
    for image in expected["images"]:
        found = truth.loadAnns(truth.getAnnIds(imgIds=[image["id"]], catIds=truth.getCatIds()))
        boxes = [([float(side) for side in one["bbox"]], truth.cats[one["category_id"]]["name"], one["area"])
                 for one in found]
        assert boxes == [(box["bounds"], names[box["class"]], box["area"]) for box in image["boxes"]], image


def make(reader, case):
    sources = [path for path in sorted(case.iterdir()) if path.name not in ("expected.json", "problems.json")]
    expected = reader(sources[0] if len(sources) == 1 else case)
    if case.name == "data-set":
        check_with_pycocotools(sources[0], expected)
    (case / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


READERS = {"coco": coco}

if __name__ == "__main__":
    for format, reader in READERS.items():
        for case in sorted((HERE / format).iterdir()):
            make(reader, case)
