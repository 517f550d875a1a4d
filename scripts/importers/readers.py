"""Reads exported labels with the import code of a labeling tool, in that tool's virtual environment.

usage: readers.py TOOL FORMAT FOLDER

Prints {"version", "images": {name: [[class, x1, y1, x2, y2], ...]}, "left_out": [name, ...], "reason"}; "left_out" are
images that the tool cannot read whatever the export contains.
"""

import importlib.metadata
import json
import pathlib
import sys
import urllib.parse


def datumaro(form, folder):
    left_out, reason = (["sub/tea.png"], "ignores folders") if form == "yolo" else ([], "")
    images = read_datumaro({"coco": "coco", "yolo": "yolo", "voc": "voc"}[form], folder / form)
    return "datumaro", {name: images[name] for name in images if name != "tea"}, left_out, reason


def cvat(form, folder):
    path = folder / "coco/annotations/instances_default.json" if form == "coco" else folder / form
    images = read_datumaro({"coco": "coco_instances", "yolo": "yolov8_detection", "voc": "voc"}[form], path)
    if form != "yolo":
        return "datumaro", images
    # CVAT drops the folder that all images are in.
    images = {name.removeprefix("images/"): images[name] for name in images if name != "tea"}
    return "datumaro", images, ["sub/tea.png"], "ignores the first folder"


def read_datumaro(form, path):
    from datumaro.components.annotation import AnnotationType
    from datumaro.components.dataset import Dataset

    dataset = Dataset.import_from(str(path), form)
    labels = dataset.categories()[AnnotationType.label]
    images = {}
    for item in dataset:
        boxes = [[labels[box.label].name, *box.points] for box in item.annotations if box.type == AnnotationType.bbox]
        # The same images are for training and for validation in YOLO.
        assert images.setdefault(item.id, boxes) == boxes
    return images


def label_studio(form, folder):
    from label_studio_sdk.converter.imports import coco, yolo

    out = str(folder / "tasks.json")
    left_out, reason = [], ""
    if form == "coco":
        coco.convert_coco_to_ls(str(folder / "coco/annotations/instances_default.json"), out, image_root_url="/")
    elif form == "yolo":
        yolo.convert_yolo_to_ls(str(folder / "yolo"), out, image_root_url="/", image_ext=".jpg,.png")
        left_out, reason = ["sub/tea.png"], "lists no subfolders"
    else:
        return None
    images, sizes = {}, json.loads((folder / "sizes.json").read_text())
    for task in json.loads(pathlib.Path(out).read_text()):
        boxes, name = [], urllib.parse.unquote(task["data"]["image"]).lstrip("/")
        for found in task["annotations"][0]["result"]:
            # For YOLO, the original size is that before EXIF rotation; the editor does not use it.
            value, (width, height) = found["value"], sizes[name]
            x, y = value["x"] * width / 100, value["y"] * height / 100
            edges = [x, y, x + value["width"] * width / 100, y + value["height"] * height / 100]
            boxes.append([value["rectanglelabels"][0], *edges])
        images[name] = boxes
    return "label-studio-sdk", images, left_out, reason


def x_anylabeling(form, folder):
    from anylabeling.views.labeling.label_converter import LabelConverter

    out = folder / "custom"
    out.mkdir(exist_ok=True)
    images = {}

    def read(path):
        shapes = json.loads(path.read_text(encoding="utf-8"))["shapes"]
        return [[shape["label"], *shape["points"][0], *shape["points"][2]] for shape in shapes]

    if form == "coco":
        LabelConverter().coco_to_custom(str(folder / "coco/annotations/instances_default.json"), str(out), "rectangle")
        names = [image["file_name"] for image in json.loads((folder / "coco/annotations/instances_default.json").read_text())["images"]]
        for name in names:
            images[name] = read(out / f"{pathlib.PurePath(name).stem}.json")
        return "x-anylabeling-cvhub", images
    root = folder / form
    copies = root / {"yolo": "images", "voc": "JPEGImages"}[form]
    left_out, reason = [], ""
    # The program opens one folder of images with one folder of labels, as it does in each of these.
    for image in (path for path in copies.rglob("*") if path.is_file()):
        name = image.relative_to(copies)
        target = out / "one.json"
        if form == "yolo":
            converter = LabelConverter(classes_file=str(root / "classes.txt"))
            converter.yolo_to_custom(str(root / "labels" / name.with_suffix(".txt")), str(target), str(image), "hbb")
            if name.name == "rotated.jpg":
                left_out, reason = [str(name)], "uses the size before EXIF rotation"
                continue
        else:
            label = root / "Annotations" / name.with_suffix(".xml")
            LabelConverter().voc_to_custom(str(label), str(target), name.name, "rectangle")
        images[str(name)] = read(target)
    return "x-anylabeling-cvhub", images, left_out, reason


def fiftyone(form, folder):
    """Without FiftyOne's database: the importers are run as its datasets run them."""
    import fiftyone.utils.coco as coco
    import fiftyone.utils.voc as voc
    import fiftyone.utils.yolo as yolo

    if form == "coco":
        importer = coco.COCODetectionDatasetImporter(
            data_path=str(folder / "images"), labels_path=str(folder / "coco/annotations/instances_default.json"), include_id=True)
        root = folder / "images"
    elif form == "yolo":
        importer = yolo.YOLOv5DatasetImporter(
            dataset_dir=str(folder / "yolo"), yaml_path="data.yaml", split="val", include_all_data=True)
        root = folder / "yolo/images"
    else:
        importer = voc.VOCDetectionDatasetImporter(
            data_path=str(folder / "voc/JPEGImages"), labels_path=str(folder / "voc/Annotations"))
        root = folder / "voc/JPEGImages"
    importer.setup()
    sizes = json.loads((folder / "sizes.json").read_text())
    images = {}
    for path, _, label in importer:
        label = label.get("detections") if isinstance(label, dict) else label
        name = str(pathlib.Path(path).resolve().relative_to(root.resolve()))
        width, height = sizes[name]
        images[name] = []
        for found in label.detections if label else []:
            x, y, w, h = found.bounding_box
            images[name].append([found.label, x * width, y * height, (x + w) * width, (y + h) * height])
    return "fiftyone", images


READERS = {"cvat": cvat, "datumaro": datumaro, "label-studio": label_studio, "x-anylabeling": x_anylabeling,
           "fiftyone": fiftyone}


def main():
    tool, form, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    read = READERS[tool](form, folder)
    if read is None:
        print("null")
        return
    package, images, *left = read
    left_out, reason = left or ([], "")
    version = f"{package} {importlib.metadata.version(package)}"
    print(json.dumps({"version": version, "images": images, "left_out": left_out, "reason": reason}))


if __name__ == "__main__":
    main()
