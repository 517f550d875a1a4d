"""Writes tests/cases/detections/ and detections_refused/: outputs of detectors in their exporters' layouts, and the
boxes by the exporters' own rules.

usage: python tests/cases/make_detections.py   (needs NumPy; tested with 2.4)

Each rule is implemented here separately, in 64-bit floats, as published by the exporter; none uses the card's
description of the output, which the tests check. A case has the description (`convention`), the outputs of one
call, the images of the call, and for each image the boxes before non-maximum suppression (`expected`, best first) and
which of them it leaves (`kept`), or a part of the message that rejects the outputs (`error`). A box has the best other
classes of the same candidate with their scores (`runners_up`) where the outputs have a score per class.
"""
import json
import zlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "detections"
REFUSED = Path(__file__).parent / "detections_refused"
MIN_SCORE = 0.005
# An image of 200x100 letterboxed into 64x64: scaled by 0.32, 16 pixels above and below.
LETTERBOX = {"canvas": [64, 64], "size": [200, 100], "scale": [3.125, 3.125], "offset": [0.0, -50.0]}
STRETCH = {"canvas": [64, 64], "size": [200, 100], "scale": [3.125, 1.5625], "offset": [0.0, 0.0]}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def f32(array):
    """Numbers that are equal in 32 and 64 bits."""
    return np.asarray(array, np.float32).astype(np.float64)


def from_center(boxes):
    x, y, width, height = np.moveaxis(boxes, -1, 0)
    return np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], axis=-1)


def in_image(boxes, image):
    """Corners in pixels of the input to pixels of the image."""
    return boxes * (image["scale"] * 2) + np.array(image["offset"] * 2)


def found(boxes, classes, scores, of_classes=None, first=0):
    """The rest above the threshold, best first. `of_classes`: the scores of all classes of each box, from id `first`."""
    order = [at for at in np.argsort(-scores, kind="stable") if scores[at] >= MIN_SCORE]
    detections = [{"box": boxes[at].tolist(), "class_id": int(classes[at]), "score": float(scores[at])} for at in order]
    if of_classes is not None:
        for at, detection in zip(order, detections):
            others = [(float(score), first + number) for number, score in enumerate(of_classes[at])
                      if first + number != classes[at] and score >= MIN_SCORE]
            others.sort(key=lambda other: -other[0])
            if others:
                detection["runners_up"] = [{"class_id": number, "score": score} for score, number in others[:3]]
    return detections


def best_of(boxes, scores):
    return found(boxes, scores.argmax(axis=-1), scores.max(axis=-1), scores)


def iou(left, right):
    width = min(left[2], right[2]) - max(left[0], right[0])
    height = min(left[3], right[3]) - max(left[1], right[1])
    overlap = max(width, 0) * max(height, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (left, right))
    return overlap / (areas - overlap)


def left_by_nms(detections, max_iou):
    kept = []
    for at, detection in enumerate(detections):
        rivals = [detections[other] for other in kept if detections[other]["class_id"] == detection["class_id"]]
        overlaps = [iou(rival["box"], detection["box"]) for rival in rivals]
        # An overlap at the limit would depend on rounding.
        assert all(abs(overlap - max_iou) > 1e-4 for overlap in overlaps)
        if all(overlap <= max_iou for overlap in overlaps):
            kept.append(at)
    return kept


def number(value):
    """JSON has no NaN and no infinity, so they are text."""
    return json.loads(str(value)) if np.isfinite(value) else str(value)


def shape_of(values):
    kind = {"f": "float32", "i": "int64", "u": "uint8"}[values.dtype.kind]
    flat = values.astype(np.float32) if kind == "float32" else values
    return {"shape": list(values.shape), "type": kind, "values": [number(value) for value in flat.ravel()]}


def write(name, convention, outputs, images, expected=None, error=None, calls=1):
    """`calls`: the images of the call, including padding."""
    case = {"convention": convention, "calls": max(calls, len(images)), "images": images,
            "outputs": {output: shape_of(values) for output, values in outputs.items()}}
    if error:
        case["error"] = error
    else:
        max_iou = convention.get("nms_iou")
        case["expected"] = expected
        case["kept"] = [list(range(len(of_image))) if max_iou is None else left_by_nms(of_image, max_iou)
                        for of_image in expected]
    text = json.dumps(case, separators=(",", ":"))
    folder = REFUSED if error else FOLDER
    (folder / f"{name}.json").write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + "\n")


def random_of(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def centers(random, rows, side=64.0):
    """Boxes around a few places, so that many overlap."""
    places = random.uniform(0.2, 0.8, (6, 2))[random.integers(0, 6, rows)] * side
    return f32(np.hstack([places + random.normal(0, 0.02 * side, (rows, 2)),
                          random.uniform(0.15, 0.3, (rows, 2)) * side]))


def corners(random, rows, side=64.0):
    return f32(from_center(centers(random, rows, side)))


def scores_of(random, *shape):
    return f32(random.uniform(0, 1, shape) ** 3)


def ultralytics():
    """Detection heads v5u to 12: [B, 4 + C, N], the best class of each candidate."""
    random = random_of("ultralytics")
    boxes, scores = centers(random, 30), scores_of(random, 30, 4)
    convention = {"boxes": "output0", "scores": {"output": "output0", "column": 4}, "candidates_last": True,
                  "box_format": "cxcywh", "box_space": "model-pixels", "nms_iou": 0.7}
    output = np.hstack([boxes, scores]).T[None]
    write("ultralytics", convention, {"output0": output}, [LETTERBOX],
          [best_of(in_image(from_center(boxes), LETTERBOX), scores)])
    # With masks: the columns after the classes are no scores.
    masks = random.normal(0, 5, (30, 6))
    write("ultralytics-segments", {**convention, "classes": 4},
          {"output0": np.hstack([boxes, scores, masks]).T[None]}, [LETTERBOX],
          [best_of(in_image(from_center(boxes), LETTERBOX), scores)])


def ultralytics_obb():
    """[B, 4 + C + 1, N], the angle last: the corners are the center plus and minus half of each side, turned."""
    random = random_of("obb")
    boxes, scores, angle = centers(random, 20), scores_of(random, 20, 3), f32(random.uniform(-0.8, 2.4, (20, 1)))
    along = np.hstack([np.cos(angle), np.sin(angle)]) * boxes[:, 2:3] / 2
    across = np.hstack([-np.sin(angle), np.cos(angle)]) * boxes[:, 3:4] / 2
    points = np.stack([boxes[:, :2] + one * along + other * across for one in (-1, 1) for other in (-1, 1)])
    upright = np.hstack([points.min(axis=0), points.max(axis=0)])
    convention = {"boxes": "output0", "scores": {"output": "output0", "column": 4}, "classes": 3,
                  "angle": {"output": "output0", "column": 7}, "candidates_last": True,
                  "box_format": "cxcywh", "box_space": "model-pixels", "nms_iou": 0.7}
    write("ultralytics-obb", convention, {"output0": np.hstack([boxes, scores, angle]).T[None]}, [LETTERBOX],
          [best_of(in_image(upright, LETTERBOX), scores)])


def end_to_end():
    """[B, 300, 6]: corners in pixels of the input, score, class, best first; rows of zeros pad."""
    random = random_of("end-to-end")
    rows = []
    for _ in range(2):
        scores = -np.sort(-scores_of(random, 7, 1), axis=0)
        rows.append(np.vstack([np.hstack([corners(random, 7), scores, random.integers(0, 5, (7, 1))]),
                               np.zeros((3, 6))]))
    images = [LETTERBOX, {**LETTERBOX, "scale": [1.0, 1.0], "offset": [0.0, 0.0]}]
    convention = {"boxes": "output0", "labels": {"output": "output0", "column": 5},
                  "scores": {"output": "output0", "column": 4}, "box_format": "xyxy", "box_space": "model-pixels"}
    write("ultralytics-end-to-end", convention, {"output0": np.stack(rows)}, images,
          [found(in_image(each[:, :4], image), each[:, 5], each[:, 4]) for each, image in zip(rows, images)])


def ultralytics_rtdetr():
    """Center and size in 0..1: [B, 300, 6] with score and class (8.4), or [B, 300, 4 + C] (8.1)."""
    random = random_of("rtdetr")
    boxes, scores = f32(centers(random, 12, 1.0)), scores_of(random, 12, 1)
    classes = random.integers(0, 5, (12, 1))
    shown = in_image(from_center(boxes) * 64, STRETCH)
    convention = {"boxes": "output0", "labels": {"output": "output0", "column": 5},
                  "scores": {"output": "output0", "column": 4}, "box_format": "cxcywh", "box_space": "normalized"}
    write("ultralytics-rtdetr", convention, {"output0": np.hstack([boxes, scores, classes])[None]}, [STRETCH],
          [found(shown, classes[:, 0], scores[:, 0])])
    scores = scores_of(random, 12, 5)
    convention = {"boxes": "output0", "scores": {"output": "output0", "column": 4}, "box_format": "cxcywh",
                  "box_space": "normalized"}
    write("ultralytics-rtdetr-8-1", convention, {"output0": np.hstack([boxes, scores])[None]}, [STRETCH],
          [best_of(shown, scores)])


def yolov5():
    """[B, N, 5 + C]: score is objectness times the class score."""
    random = random_of("yolov5")
    boxes, objectness, classes = centers(random, 40), scores_of(random, 40, 1), scores_of(random, 40, 3)
    convention = {"boxes": "output", "objectness": {"output": "output", "column": 4},
                  "scores": {"output": "output", "column": 5}, "box_format": "cxcywh", "box_space": "model-pixels",
                  "nms_iou": 0.45}
    write("yolov5", convention, {"output": np.hstack([boxes, objectness, classes])[None]}, [LETTERBOX],
          [best_of(in_image(from_center(boxes), LETTERBOX), objectness * classes)])


def yolov5_raw():
    """Three maps [B, 3, H, W, 5 + C] before the sigmoid: xy = (2 s - 0.5 + cell) stride, wh = (2 s)^2 anchor."""
    random = random_of("yolov5-raw")
    strides, names = [16, 32, 64], ["small", "medium", "large"]
    anchors = np.array([[10, 13], [16, 30], [33, 23], [30, 61], [62, 45], [59, 119]], float).reshape(3, 2, 2)
    outputs, boxes, scores = {}, [], []
    for name, stride, sizes in zip(names, strides, anchors):
        rows, columns = 64 // stride, 64 // stride
        output = f32(random.normal(-0.5, 1.2, (1, 2, rows, columns, 8)))
        outputs[name] = output
        for anchor in range(2):
            for y in range(rows):
                for x in range(columns):
                    s = sigmoid(output[0, anchor, y, x])
                    xy = (2 * s[:2] - 0.5 + [x, y]) * stride
                    boxes.append([*xy, *((2 * s[2:4]) ** 2 * sizes[anchor])])
                    scores.append(s[4] * s[5:])
    convention = {"boxes": names, "objectness": {"output": names, "column": 4},
                  "scores": {"output": names, "column": 5}, "activation": "sigmoid",
                  "grid": {"strides": strides, "coding": {"anchors": {"sizes": anchors.reshape(-1, 2).tolist()}}},
                  "box_format": "cxcywh", "box_space": "model-pixels", "nms_iou": 0.45}
    write("yolov5-raw", convention, outputs, [LETTERBOX],
          [best_of(in_image(from_center(np.array(boxes)), LETTERBOX), np.array(scores))])


def yolov7_end_to_end():
    """[N, 7]: image of the batch, corners, class, score; rows of all images."""
    random = random_of("yolov7")
    batch = np.array([0, 0, 1, 0, 1, 1, 0])[:, None]
    boxes, scores = corners(random, 7), scores_of(random, 7, 1)
    classes = random.integers(0, 3, (7, 1))
    images = [LETTERBOX, STRETCH]
    convention = {"boxes": {"output": "output", "column": 1}, "batch_index": "output",
                  "labels": {"output": "output", "column": 5}, "scores": {"output": "output", "column": 6},
                  "box_format": "xyxy", "box_space": "model-pixels"}
    expected = []
    for number, image in enumerate(images):
        own = batch[:, 0] == number
        expected.append(found(in_image(boxes[own], image), classes[own, 0], scores[own, 0]))
    write("yolov7-end-to-end", convention, {"output": np.hstack([batch, boxes, classes, scores])}, images, expected)


def yolox():
    """[B, N, 5 + C] undecoded: (xy + cell) stride, exp(wh) stride."""
    random = random_of("yolox")
    strides = [16, 32]
    # 48 and 80 are no multiples of 32: a convolution with padding rounds up.
    cells = [(x, y, stride) for stride in strides for y in range(-(-48 // stride)) for x in range(-(-80 // stride))]
    cells = np.array(cells, float)
    output = f32(np.hstack([random.normal(0, 0.5, (len(cells), 4)), scores_of(random, len(cells), 4)]))
    image = {"canvas": [80, 48], "size": [160, 90], "scale": [2.0, 2.0], "offset": [0.0, 0.0]}
    boxes = np.hstack([(output[:, :2] + cells[:, :2]) * cells[:, 2:], np.exp(output[:, 2:4]) * cells[:, 2:]])
    convention = {"boxes": "output", "objectness": {"output": "output", "column": 4},
                  "scores": {"output": "output", "column": 5}, "grid": {"strides": strides, "coding": {"offsets": {}}},
                  "box_format": "cxcywh", "box_space": "model-pixels", "nms_iou": 0.65}
    write("yolox", convention, {"output": output[None]}, [image],
          [best_of(in_image(from_center(boxes), image), output[:, 4:5] * output[:, 5:])])


def mmdeploy():
    """`dets` [1, N, 5] and `labels` [1, N]."""
    random = random_of("mmdeploy")
    dets, labels = np.hstack([corners(random, 9), scores_of(random, 9, 1)]), random.integers(0, 80, (1, 9))
    convention = {"boxes": "dets", "labels": "labels", "scores": {"output": "dets", "column": 4},
                  "box_format": "xyxy", "box_space": "model-pixels"}
    write("mmdeploy", convention, {"dets": dets[None], "labels": labels}, [LETTERBOX],
          [found(in_image(dets[:, :4], LETTERBOX), labels[0], dets[:, 4])])


def paddle():
    """[N, 6]: class, score, corners in pixels of the image; the rows after the count are not valid."""
    random = random_of("paddle")
    scores = scores_of(random, 8, 1)
    rows = np.hstack([random.integers(0, 80, (8, 1)), scores, corners(random, 8, 200.0)])
    rows[6:] = -1
    convention = {"boxes": {"output": "nms", "column": 2}, "labels": "nms", "scores": {"output": "nms", "column": 1},
                  "count": "count", "box_format": "xyxy", "box_space": "image-pixels"}
    write("paddle", convention, {"nms": rows, "count": np.array([6])}, [STRETCH],
          [found(rows[:6, 2:], rows[:6, 0], rows[:6, 1])])


def nanodet():
    """[1, N, C + 4 x 8]: distances from the cell's point are the expectation of a softmax over bins, in strides.

    NanoDet-Plus counts from the top left corner of a cell, and its graph ends with the sigmoid; the first NanoDet counts
    from the center and gives six maps, classes before the sigmoid."""
    random = random_of("nanodet")
    strides = [16, 32]
    image = {"canvas": [64, 48], "size": [128, 90], "scale": [2.0, 2.0], "offset": [0.0, -3.0]}
    levels = []
    for stride in strides:
        columns, rows = -(-64 // stride), -(-48 // stride)
        cells = np.array([(x, y) for y in range(rows) for x in range(columns)], float)
        levels.append((stride, cells, f32(random.normal(-2, 2, (len(cells), 3))),
                       f32(random.normal(0, 2, (len(cells), 32)))))

    def boxes_of(shift):
        boxes = []
        for stride, cells, _, bins in levels:
            distance = softmax(bins.reshape(-1, 4, 8)) @ np.arange(8) * stride
            points = (cells + shift) * stride
            boxes.append(np.hstack([points - distance[:, :2], points + distance[:, 2:]]))
        return in_image(np.vstack(boxes), image)

    logits = np.vstack([level[2] for level in levels])
    scores = f32(sigmoid(logits))
    whole = np.hstack([scores, np.vstack([level[3] for level in levels])])
    common = {"box_format": "xyxy", "box_space": "model-pixels", "nms_iou": 0.6}
    grid = {"strides": strides, "coding": {"distance-bins": {"bins": 8, "point": "top-left"}}}
    write("nanodet-plus", {"boxes": {"output": "output", "column": 3}, "scores": "output", "classes": 3, "grid": grid,
                           **common}, {"output": whole[None]}, [image], [best_of(boxes_of(0.0), scores)])
    grid = {"strides": strides, "coding": {"distance-bins": {"bins": 8, "point": "center"}}}
    outputs = {}
    for stride, _, classes, bins in levels:
        outputs[f"cls_{stride}"], outputs[f"dis_{stride}"] = classes[None], bins[None]
    write("nanodet-six-maps", {"boxes": ["dis_16", "dis_32"], "scores": ["cls_16", "cls_32"], "activation": "sigmoid",
                               "grid": grid, **common}, outputs, [image], [best_of(boxes_of(0.5), sigmoid(logits))])


def torchvision():
    """Without a batch axis; ids count from 1, as its label sets do."""
    random = random_of("torchvision")
    boxes, scores, labels = corners(random, 6), scores_of(random, 6), random.integers(1, 91, 6)
    convention = {"boxes": "boxes", "labels": "labels", "scores": "scores", "box_format": "xyxy",
                  "box_space": "model-pixels"}
    write("torchvision", convention, {"boxes": boxes, "labels": labels, "scores": scores}, [LETTERBOX],
          [found(in_image(boxes, LETTERBOX), labels, scores)])
    nothing = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, int), "scores": np.zeros(0)}
    write("torchvision-nothing", convention, nothing, [LETTERBOX], [[]])


def detr():
    """Softmax over the classes and “no object”, which is the last and dropped; then the best class of each query."""
    random = random_of("detr")
    boxes, logits = f32(centers(random, 10, 1.0)), f32(random.normal(0, 3, (10, 6)))
    image = {"canvas": [128, 64], "size": [400, 200], "scale": [3.125, 3.125], "offset": [0.0, 0.0]}
    convention = {"boxes": "pred_boxes", "scores": "logits", "activation": "softmax", "background": "last",
                  "box_format": "cxcywh", "box_space": "normalized"}
    write("detr", convention, {"logits": logits[None], "pred_boxes": boxes[None]}, [image],
          [best_of(from_center(boxes) * [400, 200, 400, 200], softmax(logits)[:, :-1])])


def rtdetr():
    """Sigmoid, then the best `queries` of all queries and classes."""
    random = random_of("rtdetr-all")
    boxes, logits = f32(centers(random, 8, 1.0)), f32(random.normal(-1, 2, (8, 5)))
    scores = sigmoid(logits).ravel()
    top = np.argsort(-scores, kind="stable")[:8]
    convention = {"boxes": "pred_boxes", "scores": "logits", "activation": "sigmoid", "label_choice": "all",
                  "max_boxes": 8, "box_format": "cxcywh", "box_space": "normalized"}
    shown = from_center(boxes)[top // 5] * [200, 100, 200, 100]
    write("rtdetr", convention, {"logits": logits[None], "pred_boxes": boxes[None]}, [STRETCH],
          [found(shown, top % 5, scores[top], sigmoid(logits)[top // 5])])


def dfine():
    """Pixels of the image, which the graph was told the size of."""
    random = random_of("dfine")
    boxes, scores, labels = corners(random, 6, 200.0), scores_of(random, 1, 6), random.integers(0, 80, (1, 6))
    convention = {"boxes": "boxes", "labels": "labels", "scores": "scores", "box_format": "xyxy",
                  "box_space": "image-pixels"}
    write("d-fine", convention, {"labels": labels, "boxes": boxes[None], "scores": scores}, [STRETCH],
          [found(boxes, labels[0], scores[0])])


def tf_object_detection():
    """y1, x1, y2, x2 in 0..1 and classes from 1, as 32-bit floats; the count as well."""
    random = random_of("tf")
    boxes, scores = f32(corners(random, 6, 1.0)), scores_of(random, 1, 6)
    classes = random.integers(1, 91, (1, 6)).astype(float)
    convention = {"boxes": "detection_boxes", "labels": "detection_classes", "scores": "detection_scores",
                  "count": "num_detections", "box_format": "yxyx", "box_space": "normalized", "class_offset": -1}
    outputs = {"detection_boxes": boxes[None], "detection_classes": classes, "detection_scores": scores,
               "num_detections": np.array([4.0])}
    shown = boxes[:4][:, [1, 0, 3, 2]] * [200, 100, 200, 100]
    write("tf-object-detection", convention, outputs, [STRETCH],
          [found(shown, classes[0, :4] - 1, scores[0, :4])])


def ssd():
    """boxes [1, N, 1, 4], scores [1, N, C] with the background first: every class is a box of its own."""
    random = random_of("ssd")
    boxes, scores = f32(corners(random, 15, 1.0)), scores_of(random, 15, 4)
    convention = {"boxes": "boxes", "scores": "scores", "background": "first", "label_choice": "all",
                  "box_format": "yxyx", "box_space": "normalized", "class_offset": 1, "nms_iou": 0.6}
    shown = np.repeat(boxes[:, [1, 0, 3, 2]] * [200, 100, 200, 100], 3, axis=0)
    write("ssd", convention, {"boxes": boxes[None, :, None], "scores": scores[None]}, [STRETCH],
          [found(shown, np.tile([1, 2, 3], 15), scores[:, 1:].ravel(), np.repeat(scores[:, 1:], 3, axis=0), first=1)])


def model_zoo_yolov3():
    """Suppression in the graph: `indices` with image, class and candidate of what it keeps, filled up with -1."""
    random = random_of("model zoo yolov3")
    sizes = [[200, 100], [50, 80]]
    boxes = np.stack([corners(random, 20, min(size)) for size in sizes])
    scores = scores_of(random, 2, 3, 20)
    indices = np.array([[1, 2, 4], [0, 0, 7], [0, 2, 7], [1, 0, 19], [0, 1, 0], [-1, -1, -1]])
    scores[tuple(indices[:5].T)] += 0.25
    scores = f32(np.minimum(scores, 1.0))
    convention = {"boxes": "boxes", "scores": "scores", "selected": "indices", "label_choice": "all",
                  "box_format": "yxyx", "box_space": "image-pixels"}
    images = [{**STRETCH, "size": size} for size in sizes]
    expected = []
    for image in range(2):
        _, classes, rows = indices[indices[:, 0] == image].T
        expected.append(found(boxes[image][rows], classes, scores[image, classes, rows], scores[image][:, rows].T))
    outputs = {"boxes": boxes[:, :, [1, 0, 3, 2]], "scores": scores, "indices": indices}
    write("model-zoo-yolov3", convention, outputs, images, expected)
    refused = {**outputs, "indices": np.array([[0, 3, 1]])}
    write("selected-class", convention, refused, images, error="selected class 3 of box 1")
    refused = {**outputs, "indices": np.array([[0, 1]])}
    write("selected-pairs", convention, refused, images, error="no rows of image, class and box")


def yunet():
    """OpenCV's FaceDetectorYN: offsets from cells, and the geometric mean of two scores."""
    random = random_of("yunet")
    grid = [(x, y, stride) for stride in (8, 16, 32) for y in range(64 // stride) for x in range(64 // stride)]
    cells = np.array(grid, np.float64)
    cls, obj = scores_of(random, len(cells)), scores_of(random, len(cells))
    numbers = f32(random.normal(0, 0.5, (len(cells), 4)))
    stride = cells[:, 2:]
    center = (cells[:, :2] + numbers[:, :2]) * stride
    boxes = from_center(np.hstack([center, np.exp(numbers[:, 2:]) * stride]))
    ends = np.cumsum([0, 64, 16, 4])
    outputs = {}
    for kind, values in (("cls", cls[:, None]), ("obj", obj[:, None]), ("bbox", numbers)):
        for level, size in enumerate((8, 16, 32)):
            outputs[f"{kind}_{size}"] = values[ends[level]:ends[level + 1]][None]
    levels = lambda kind: [f"{kind}_{size}" for size in (8, 16, 32)]  # noqa: E731
    convention = {"boxes": levels("bbox"), "scores": levels("cls"), "objectness": levels("obj"),
                  "activation": "square-root", "grid": {"strides": [8, 16, 32], "coding": {"offsets": {}}},
                  "box_format": "cxcywh", "box_space": "model-pixels", "nms_iou": 0.3}
    expected = [best_of(in_image(boxes, LETTERBOX), np.sqrt(cls * obj)[:, None])]
    write("yunet", convention, outputs, [LETTERBOX], expected)


def scrfd():
    """InsightFace: distances from the corner of a cell, two anchors after one another."""
    random = random_of("scrfd")
    outputs, boxes, scores = {}, [], []
    for stride in (8, 16, 32):
        places = [(x, y) for y in range(64 // stride) for x in range(64 // stride)]
        points = np.repeat(np.array(places, np.float64) * stride, 2, axis=0)
        distances = f32(random.uniform(0.2, 3, (len(points), 4)))
        boxes.append(np.hstack([points - distances[:, :2] * stride, points + distances[:, 2:] * stride]))
        scores.append(scores_of(random, len(points), 1))
        outputs[f"score_{stride}"], outputs[f"bbox_{stride}"] = scores[-1], distances
    levels = lambda kind: [f"{kind}_{stride}" for stride in (8, 16, 32)]  # noqa: E731
    coding = {"distances": {"anchors": 2, "point": "top-left"}}
    convention = {"boxes": levels("bbox"), "scores": levels("score"), "grid": {"strides": [8, 16, 32], "coding": coding},
                  "box_format": "xyxy", "box_space": "model-pixels", "nms_iou": 0.4}
    expected = [best_of(in_image(np.vstack(boxes), LETTERBOX), np.vstack(scores))]
    write("scrfd", convention, outputs, [LETTERBOX], expected)


def retinaface():
    """`decode` of biubug6/Pytorch_Retinaface: two priors per cell after one another, variances of 0.1 and 0.2."""
    random = random_of("retinaface")
    priors = []
    for stride, sizes in ((8, (16.0, 32.0)), (16, (64.0, 128.0)), (32, (256.0, 512.0))):
        for y, x in np.ndindex(64 // stride, 64 // stride):
            priors += [[(x + 0.5) * stride, (y + 0.5) * stride, size, size] for size in sizes]
    priors = np.array(priors)
    offsets, faces = f32(random.uniform(-3, 3, priors.shape)), scores_of(random, len(priors), 1)
    centers = priors[:, :2] + offsets[:, :2] * 0.1 * priors[:, 2:]
    boxes = from_center(np.hstack([centers, priors[:, 2:] * np.exp(offsets[:, 2:] * 0.2)]))
    coding = {"priors": {"sizes": [[2.0**power] * 2 for power in range(4, 10)]}}
    convention = {"boxes": "loc", "scores": "conf", "background": "first", "grid": {"strides": [8, 16, 32], "coding": coding},
                  "box_format": "cxcywh", "box_space": "model-pixels", "nms_iou": 0.4}
    write("retinaface", convention, {"loc": offsets, "conf": np.hstack([f32(1 - faces), faces])}, [LETTERBOX],
          [best_of(in_image(boxes, LETTERBOX), faces)])


def fixed_batch():
    """Two images in a call that always has four; each has a count of its own."""
    random = random_of("fixed-batch")
    boxes, scores = np.stack([corners(random, 5) for _ in range(4)]), scores_of(random, 4, 5)
    labels, count = random.integers(0, 9, (4, 5)), np.array([[5], [2], [0], [0]])
    images = [LETTERBOX, STRETCH]
    convention = {"boxes": "boxes", "labels": "labels", "scores": "scores", "count": "count", "box_format": "xyxy",
                  "box_space": "model-pixels"}
    expected = [found(in_image(boxes[at, :count[at, 0]], image), labels[at], scores[at, :count[at, 0]])
                for at, image in enumerate(images)]
    write("fixed-batch", convention, {"boxes": boxes, "labels": labels, "scores": scores, "count": count}, images,
          expected, calls=4)


def refused():
    """Outputs that are not what the description says: a wrong prediction would be worse than none."""
    boxes, labels, scores = np.array([[1.0, 1, 9, 9], [2, 2, 8, 8]]), np.array([0, 1]), np.array([0.9, 0.8])
    good = {"boxes": boxes, "labels": labels, "scores": scores}
    separate = {"boxes": "boxes", "labels": "labels", "scores": "scores", "box_format": "xyxy",
                "box_space": "model-pixels"}
    rows = np.arange(14.0).reshape(1, 2, 7) / 100
    packed = {"boxes": "output", "scores": {"output": "output", "column": 4}, "box_format": "cxcywh",
              "box_space": "model-pixels"}
    grid = {"strides": [32], "coding": {"offsets": {}}}
    for name, convention, outputs, error in [
        ("no-output", separate, {"boxes": boxes, "labels": labels}, "no output"),
        ("score-nan", separate, {**good, "scores": np.array([0.9, np.nan])}, "not numbers"),
        ("score-above-one", separate, {**good, "scores": np.array([0.9, 1.5])}, "above 1"),
        ("box-infinite", separate, {**good, "boxes": boxes * [1, 1, 1, np.inf]}, "not numbers"),
        ("label-negative", separate, {**good, "labels": np.array([0, -1])}, "class -1"),
        ("label-fraction", separate, {**good, "labels": np.array([0.5, 1])}, "class 0.5"),
        ("label-below-offset", {**separate, "class_offset": -1}, good, "offset of -1"),
        ("count-too-large", {**separate, "count": "count"}, {**good, "count": np.array([3])}, "a count of"),
        ("count-negative", {**separate, "count": "count"}, {**good, "count": np.array([-1])}, "a count of"),
        ("count-of-two", {**separate, "count": "count"}, {**good, "count": np.array([1, 1])}, "a count of"),
        ("fewer-labels", separate, {**good, "labels": np.array([0])}, "do not fit together"),
        ("more-scores", separate, {**good, "scores": np.array([0.9, 0.8, 0.7])}, "do not fit together"),
        ("transposed", packed, {"output": np.zeros((1, 7, 3))}, "too few columns"),
        ("no-class", packed, {"output": rows[..., :4]}, "do not fit together"),
        ("fewer-classes", {**packed, "classes": 4}, {"output": rows}, "do not fit together"),
        ("only-background", {**packed, "classes": 1, "background": "last"}, {"output": rows}, "background"),
        ("other-grid", {**packed, "grid": grid}, {"output": rows}, "cells"),
        ("levels", {**packed, "boxes": ["output", "output"], "scores": ["output", "output", "output"]},
         {"output": rows}, "names 2 outputs"),
    ]:
        write(name, convention, outputs, [LETTERBOX], error=error)
    write("other-batch", separate, good, [LETTERBOX, LETTERBOX, LETTERBOX], error="does not match 3 images")


def main():
    for folder in (FOLDER, REFUSED):
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
    for make in (ultralytics, ultralytics_obb, end_to_end, ultralytics_rtdetr, yolov5, yolov5_raw, yolov7_end_to_end,
                 yolox, mmdeploy, paddle, nanodet, torchvision, detr, rtdetr, dfine, tf_object_detection, ssd,
                 fixed_batch, refused, model_zoo_yolov3, yunet, scrfd, retinaface):
        make()


main()
