"""Writes expected.json into each case folder: the results of independent readers.

    pip install pycocotools==2.0.11 pyyaml
    python tests/cases/annotations/make.py

A case is a folder with a file or a folder of annotations. Each format is read with Python's own readers (json, csv,
xml.etree, PyYAML), and the COCO dataset is compared with pycocotools. problems.json is written by hand: the
reports of entries that cannot be used.
"""

import contextlib
import io
import json
import math
from pathlib import Path

HERE = Path(__file__).parent


def number_or_text(value):
    """The id of an image or class; None if invalid."""
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


UNSET = ["", "0", "-1", "-", "false", "f", "no", "n", "none", "null", "nan", "na", "n/a", "<na>", "unspecified"]


def flag(value):
    """None if it is not a flag."""
    text = str(value).strip().lower()
    with contextlib.suppress(ValueError):
        text = f"{float(text):g}"
    return False if text in UNSET else True if text in ("1", "true", "t", "yes", "y") else None


def coco_box(raw, has_scores):
    """None if the entry cannot be used."""
    bbox = raw.get("bbox")
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(map(is_number, bbox)) or min(bbox[2:]) < 0:
        return None
    score = raw.get("score")
    if has_scores and not (is_number(score) and 0 <= score <= 1):
        return None
    area = raw.get("area")
    crowd = flag(raw.get("iscrowd"))
    if crowd is None or flag(raw.get("ignore")) is None:
        return None
    role = "crowd" if crowd else "object"  # As pycocotools, which does not use `ignore`.
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


def images_of(rows):
    """Images with boxes and labels, from rows of image, size, class and box or label; class and box may be None."""
    classes, images = {}, {}
    for name, size, label, entry in rows:
        shown = name.replace("\\", "/").removeprefix("./")
        image = images.setdefault(shown, {"id": None, "name": shown, "size": None, "boxes": [], "labels": []})
        image["size"] = image["size"] or size
        if label is not None:
            place = classes.setdefault(label, len(classes))
            image["boxes" if "bounds" in entry else "labels"].append({"class": place} | entry)
    for image in images.values():
        image["labels"].sort(key=lambda label: -(label["score"] or 0))
    return {"classes": [{"number": number, "name": name} for number, name in classes],
            "images": list(images.values())}


def box(bounds, score=None, role="object", area=None, **more):
    """None if the numbers do not form a box."""
    if not all(map(math.isfinite, bounds)) or min(bounds[2:]) < 0:
        return None
    if score is not None and not 0 <= score <= 1:
        return None
    return {"bounds": bounds, "score": score, "area": area, "role": role} | more


def yolo(case):
    folder = case if case.is_dir() else case.parent
    names, keypoints, split = None, None, "**"
    if (folder / "classes.txt").exists():
        names = dict(enumerate((folder / "classes.txt").read_text().split("\n")[:-1]))
    if (folder / "data.yaml").exists():
        import yaml

        data = yaml.safe_load((folder / "data.yaml").read_text())
        names = yaml.load((folder / "data.yaml").read_text(), yaml.BaseLoader)["names"]  # As texts.
        names = {int(key): name for key, name in (names.items() if isinstance(names, dict) else enumerate(names))}
        keypoints = math.prod(data["kpt_shape"]) if "kpt_shape" in data else None
        split = data.get("val", "images/**").removeprefix("images/")
    labels = [case] if case.is_file() else sorted(folder.rglob(f"labels/{split}/*.txt"))
    pictures = {path.with_suffix(""): path for path in folder.rglob(f"images/{split}/*") if path.is_file()}
    rows = []
    for file in labels:
        stem = Path(str(file.with_suffix("")).replace("/labels/", "/images/"))
        name = str(pictures.pop(stem, stem).relative_to(folder))
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        rows.append((name, None, None, None))
        for line in text.splitlines():
            try:
                numbers = [float(text) for text in line.split()]
            except ValueError:
                continue
            if len(numbers) < 5 or not numbers[0].is_integer() or numbers[0] < 0:
                continue
            number = int(numbers[0])
            if names and number not in names:
                continue
            if keypoints:
                numbers = numbers[:5]
            score = numbers.pop() if len(numbers) % 2 == 0 else None
            if len(numbers) == 5:
                _, x, y, width, height = numbers
                bounds = [x - width / 2, y - height / 2, width, height]
            else:
                xs, ys = numbers[1::2], numbers[2::2]
                bounds = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
            found = box(bounds, score, unit="fractions")
            if found and max(bounds) <= 2:
                rows.append((name, None, (number, names[number] if names else None), found))
    rows += [(str(path.relative_to(folder)), None, None, None) for path in sorted(pictures.values())]
    made = images_of(rows)
    if names:
        order = [{"number": number, "name": name} for number, name in names.items()]
        for image in made["images"]:
            for found in image["boxes"]:
                found["class"] = order.index(made["classes"][found["class"]])
        made["classes"] = order
    return made


def voc(case):
    from xml.etree import ElementTree

    folder = case if case.name != "Annotations" else case.parent
    rows = []
    for file in sorted(case.rglob("*.xml"), key=lambda path: str(path.relative_to(case))):
        try:
            root = ElementTree.fromstring(file.read_bytes().decode("utf-8-sig"))
        except ElementTree.ParseError:
            continue
        if root.tag != "annotation":
            continue
        given = Path(root.findtext("filename"))
        relative = file.relative_to(case).with_suffix(given.suffix if given.stem == file.stem else "")
        size = [int(root.findtext(f"size/{side}") or 0) for side in ("width", "height")]
        size = size if all(size) else None
        name = str(relative)
        rows.append((name, size, None, None))
        for found in root.findall("object"):
            label = found.findtext("name")
            sides = [found.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
            if label is None or None in sides:
                continue
            xmin, ymin, xmax, ymax = map(float, sides)
            # VOCevaldet.m: (xmax - xmin + 1) * (ymax - ymin + 1), counted from 1.
            bounds = [xmin - 1, ymin - 1, xmax - xmin + 1, ymax - ymin + 1]
            difficult = flag(found.findtext("difficult"))
            role = "ignored" if difficult else "object"
            if difficult is not None and (entry := box(bounds, role=role)):
                rows.append((name, size, (None, label), entry))
    return images_of(rows)


def table(file):
    import csv

    text = file.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    header = text.splitlines()[0].lower()
    delimiter = ";" if ";" in header else ","
    rows = []
    for row in csv.DictReader(text.splitlines(), delimiter=delimiter):
        row = {key.lower(): value or "" for key, value in row.items()}
        get = lambda *keys: next((row[key] for key in keys if key in row), "")
        name = get("image", "filename", "imageid")
        if not name or any("\udcff" in text for text in row.values()):
            continue
        label = get("label", "class", "labelname") or None
        number = get("class_id") or None
        if number is None and label and label.isdigit():
            number, label = label, None
        try:
            number = int(number) if number else None
            score = float(text) if (text := get("score", "confidence")) else None
            x1, y1, x2, y2 = [float(text) if (text := get(*keys)) else None
                              for keys in (("x1", "xmin", "x"), ("y1", "ymin", "y"), ("x2", "xmax", "w"),
                                           ("y2", "ymax", "h"))]
        except ValueError:
            continue
        size = [int(row["width"]), int(row["height"])] if "width" in row else None
        key = None if number is None and label is None else (number, label)
        if [x1, y1, x2, y2] == [None] * 4:
            rows.append((name, size, key, {"score": score}))
            continue
        if key is None or None in (x1, y1, x2, y2):
            continue
        bounds = [x1, y1, x2, y2] if "w" in row else [x1, y1, x2 - x1, y2 - y1]
        crowd, difficult = flag(get("iscrowd", "isgroupof")), flag(get("difficult"))
        if crowd is None or difficult is None:
            continue
        role = "crowd" if crowd else "ignored" if difficult else "object"
        more = {"unit": "fractions"} if "imageid" in row else {}
        if entry := box(bounds, score, role, **more):
            rows.append((name, size, key, entry))
    # Of the classes A, B, 0 and 1 without ids, none is a number.
    given = [key for *_, key, _ in rows if key]
    if "class_id" not in header and any(number is None for number, _ in given):
        named = lambda key: key and (None, key[1] if key[0] is None else str(key[0]))
        rows = [(name, size, named(key), found) for name, size, key, found in rows]
    return images_of(rows)


def json_lines(file):
    rows, seen, without = [], set(), {}
    for text in file.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if not isinstance(line, dict) or "uri" not in line:
            continue
        name = line["uri"]
        if line.get("status", "ok") != "ok":
            if name not in seen:
                rows.append((name, None, None, None))
                without[name] = line["error"] if line["status"] == "failed" else "unpredicted"
            continue
        if name in seen or not isinstance(line.get("detections", []), list):
            continue
        seen.add(name)
        size = [line["width"], line["height"]] if "width" in line else None
        rows.append((name, size, None, None))
        for found in line.get("classes", []):
            rows.append((name, size, (found["index"], found["label"]), {"score": found["score"]}))
        for found in line.get("detections", []):
            if not isinstance(found, dict) or len(found["box"]) != 4 or "label" not in found:
                continue
            x1, y1, x2, y2 = found["box"]
            if entry := box([x1, y1, x2 - x1, y2 - y1], found["score"]):
                rows.append((name, size, (found["class_id"], found["label"]), entry))
    made = images_of(rows)
    for image in made["images"]:
        if image["name"] in without and image["name"] not in seen:
            image["failed"] = without[image["name"]]
    return made


def folders(case):
    rows = []
    for file in sorted(case.rglob("*"), key=lambda path: str(path.relative_to(case))):
        parts = list(file.relative_to(case).parts)
        depth = 1 if case.parent.name == "by-split" else 0
        if file.suffix in (".jpg", ".png") and len(parts) > depth + 1:
            rows.append(("/".join(parts), None, (None, parts[depth]), {"score": None}))
    return images_of(rows)


def make(reader, case):
    sources = [path for path in sorted(case.iterdir()) if path.name not in ("expected.json", "problems.json")]
    expected = reader(sources[0] if len(sources) == 1 else case)
    if reader is coco and case.name == "data-set":
        check_with_pycocotools(sources[0], expected)
    (case / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


READERS = {"coco": coco, "csv": table, "folders": folders, "json-lines": json_lines, "voc": voc, "yolo": yolo}

if __name__ == "__main__":
    for format, reader in READERS.items():
        for case in sorted((HERE / format).iterdir()):
            make(reader, case)
