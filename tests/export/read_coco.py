"""Opens an exported COCO file with pycocotools, as a dataset and as results, and prints what it found."""

import contextlib
import json
import sys

from pycocotools.coco import COCO

with contextlib.redirect_stdout(sys.stderr):
    dataset = COCO(sys.argv[1])
    annotations = dataset.loadAnns(dataset.getAnnIds())
    found = [{key: a[key] for key in ("image_id", "category_id", "bbox", "score")} for a in annotations]
    # loadRes cannot take an empty list.
    results = dataset.loadRes(found).dataset["annotations"] if found else []

boxes = []
for annotation in annotations:
    x, y, width, height = annotation["bbox"]
    assert abs(annotation["area"] - width * height) < 0.01 and annotation["iscrowd"] == 0
    image = dataset.loadImgs(annotation["image_id"])[0]
    assert x >= 0 and y >= 0 and x + width <= image["width"] + 0.01 and y + height <= image["height"] + 0.01
    category = dataset.loadCats(annotation["category_id"])[0]
    boxes.append([image["file_name"], category["name"], x, y, x + width, y + height])
print(
    json.dumps(
        {
            "images": sorted(image["file_name"] for image in dataset.loadImgs(dataset.getImgIds())),
            "categories": len(dataset.getCatIds()),
            "boxes": boxes,
            "loaded_as_results": len(results),
            "scores_kept": all(0 < a["score"] <= 1 for a in results),
        }
    )
)
