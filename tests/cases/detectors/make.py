"""Tiny graphs with the outputs of every family of detectors, and the predictions by the family's own rules.

usage: python make.py        (pip install onnx==1.23.2 onnxruntime==1.31.1 opencv-python-headless==5.0.0 pillow numpy)
Writes scene.png, and CASE/model.onnx, the exporters' additional files, and CASE/expected.json: the detections
above `min_score`, after the family's own non-maximum suppression and limit, best first, in pixels of scene.png.
Every number that a graph returns depends on the positions of the image's colors, so a wrong size, position, channel
order or normalization changes boxes and scores. Image preparation and output reading are implemented here with Pillow,
OpenCV and NumPy by the exporters' published rules; the graphs only return the raw numbers.
"""

import json
import pathlib
import sys

import cv2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto
from PIL import Image

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "conventions"))
import make  # noqa: E402

F32, F16, U8, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT64
SIDE, CLASSES = 64, 3
NAMES = ["rust", "moss", "lichen"]
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


class Graph(make.Graph):
    """With the common parts of detector graphs."""

    def features(self, image, layout="nchw", scale=1.0, batch=1):
        """`[batch, 12]`: the mean of each channel in each quarter of the image, times `scale`."""
        if layout == "nhwc":
            image = self.op("Transpose", image, perm=[0, 3, 1, 2])
        if layout == "chw":
            image = self.op("Unsqueeze", image, self.const([0], np.int64))
        scaled = self.op("Mul", image, self.const(scale))
        shape = self.op("Shape", scaled)
        half = self.op("Div", self.op("Slice", shape, self.const([2], np.int64), self.const([4], np.int64)), self.const([2, 2], np.int64))
        axes = self.const([2, 3], np.int64)
        quarters = []
        for down, across in ((0, 0), (0, 1), (1, 0), (1, 1)):
            pick = self.const([down, across], np.int64)
            start = self.op("Mul", half, pick)
            end = self.op("Add", half, start)
            quarters.append(self.op("ReduceMean", self.op("Slice", scaled, start, end, axes), axes=[2, 3], keepdims=0))
        return self.op("Concat", *quarters, axis=1)

    def waves(self, features, rows, columns, seed, batch=1):
        """`[batch, rows, columns]` in -1..1: sines of the features, different for each number, without stored weights."""
        count = rows * columns
        at = self.op("Range", self.const(0.0), self.const(float(count)), self.const(1.0))
        places = [self.op("Sin", self.op("Mul", at, self.const(0.7 + 0.31 * ((seed * 7 + i * 5) % 13)))) for i in range(3)]
        total = None
        for i, place in enumerate(places):
            # Three mixtures of the features, each driving waves of its own length.
            mix = np.cos(np.arange(12) * (1.3 + 0.4 * i) + seed)[:, None]
            amount = self.op("MatMul", features, self.const(mix))
            wave = self.op("Sin", self.op("Add", self.op("Mul", amount, self.const(1.5)), self.op("Mul", place, self.const(2.5))))
            total = wave if total is None else self.op("Add", total, wave)
        third = self.op("Div", total, self.const(3.0))
        return self.op("Reshape", third, self.const([batch, rows, columns], np.int64))

    def columns(self, table, start, end):
        return self.op("Slice", table, self.const([start], np.int64), self.const([end], np.int64), self.const([2], np.int64))

    def scaled(self, table, factor, shift):
        return self.op("Add", self.op("Mul", table, self.const(factor)), self.const(shift))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def cells(size, strides, anchors=1):
    """Column, row and stride of every candidate: level after level, anchor after anchor, row after row."""
    rows = []
    for stride in strides:
        width, height = -(-size[0] // stride), -(-size[1] // stride)
        for _ in range(anchors):
            rows += [(x, y, stride) for y in range(height) for x in range(width)]
    return np.array(rows, np.float64)


# The image.


def scene():
    y, x = np.mgrid[0:75, 0:110]
    image = np.stack([x * 2 % 256, (y * 3 + x) % 256, 255 - y * 3 % 256], axis=-1).astype(np.uint8)
    image[10:40, 20:60] = (230, 40, 30)
    image[35:70, 70:100] = (20, 60, 220)
    image[50:70, 5:30] = (90, 200, 90)
    Image.fromarray(image).save(HERE / "scene.png")
    return image


def letterbox(image, width, height, fill, centered=True, rounding=round, stride=None):
    """The padded image, and the functions of `boxes_back`: Ultralytics' LetterBox, YOLOX's preproc."""
    ratio = min(width / image.shape[1], height / image.shape[0])
    new = max(rounding(image.shape[1] * ratio), 1), max(rounding(image.shape[0] * ratio), 1)
    resized = image if new == (image.shape[1], image.shape[0]) else cv2.resize(image, new, interpolation=cv2.INTER_LINEAR)
    gap = [width - new[0], height - new[1]]
    if stride:
        gap = [side % stride for side in gap]
    left, top = [(round(side / 2 - 0.1) if centered else 0) for side in gap]
    canvas = np.full((new[1] + gap[1], new[0] + gap[0], 3), fill, np.uint8)
    canvas[top : top + new[1], left : left + new[0]] = resized
    return canvas, ratio, new, (left, top)


def each_axis(boxes, image, ratio, new, pad):
    gains = np.array([new[0] / image.shape[1], new[1] / image.shape[0]] * 2)
    return (boxes - np.array([*pad, *pad])) / gains


def one_ratio(boxes, image, ratio, new, pad):
    return (boxes - np.array([*pad, *pad])) / ratio


def exact_padding(boxes, image, ratio, new, pad, size=(SIDE, SIDE)):
    exact = [(size[axis] - image.shape[1 - axis] * ratio) / 2 for axis in (0, 1)]
    return (boxes - np.array([*exact, *exact])) / ratio


def stretched(boxes, image, size=(SIDE, SIDE)):
    factors = np.array([image.shape[1] / size[0], image.shape[0] / size[1]] * 2)
    return boxes * factors


# Reading.


def corners(boxes):
    center, size = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([center - size / 2, center + size / 2], axis=1)


def iou(left, right):
    low, high = np.maximum(left[:2], right[:2]), np.minimum(left[2:], right[2:])
    overlap = np.prod(np.maximum(high - low, 0))
    union = np.prod(np.maximum(left[2:] - left[:2], 0)) + np.prod(np.maximum(right[2:] - right[:2], 0)) - overlap
    return overlap / union if union > 0 else 0.0


def suppressed(boxes, classes, scores, threshold):
    """Greedy, best score first, within each class."""
    kept = []
    for index in np.argsort(-scores, kind="stable"):
        if all(classes[index] != classes[other] or iou(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(index)
    return kept


def detections(boxes, classes, scores, min_score, nms=None, limit=None):
    kept = scores >= min_score
    boxes, classes, scores = boxes[kept], classes[kept], scores[kept]
    order = suppressed(boxes, classes, scores, nms) if nms else list(np.argsort(-scores, kind="stable"))
    return [
        {"box": [float(edge) for edge in boxes[i]], "class_id": int(classes[i]), "score": float(scores[i])}
        for i in order[:limit]
    ]


def best(scores):
    classes = scores.argmax(axis=1)
    return classes, scores[np.arange(len(scores)), classes]


def every_class(boxes, scores):
    count, classes = scores.shape
    return np.repeat(boxes, classes, axis=0), np.tile(np.arange(classes), count), scores.ravel()


def run(model, feed):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def write(case, model, found, min_score, beside=None, **more):
    folder = HERE / case
    folder.mkdir(exist_ok=True)
    onnx.checker.check_model(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for name, text in (beside or {}).items():
        (folder / name).write_text(text)
    assert 3 <= len(found) <= 200, (case, len(found))
    expected = {"min_score": min_score, "detections": found, **more}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    print(f"{case}: {len(found)} detections, model {len(model.SerializeToString())} bytes")


def planar(image, divide_by=255.0, mean=(0, 0, 0), std=(1, 1, 1)):
    """`[1, 3, height, width]`"""
    values = (image.astype(np.float32) / np.float32(divide_by) - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None].astype(np.float32))


def ultralytics(task="detect", version="8.3.240", **more):
    names = "{" + ", ".join(f"{i}: '{name}'" for i, name in enumerate(NAMES)) + "}"
    return {
        "description": "Ultralytics model", "author": "Ultralytics", "version": version, "task": task, "stride": "32",
        "batch": "1", "imgsz": f"[{SIDE}, {SIDE}]", "names": names, **more,
    }


# Graphs.


def dense_table(graph, features, size, anchors=1, extra=0, objectness=False, strides=(8, 16, 32), seed=1, batch=1):
    """Decoded boxes around their cells, then scores: `[batch, candidates, 4 + objectness + classes + extra]`."""
    grid = cells(size, strides, anchors)
    waves = graph.waves(features, len(grid), 4 + int(objectness) + CLASSES + extra, seed, batch)
    center = (grid[:, :2] + 0.5) * grid[:, 2:]
    shifts = graph.op("Mul", graph.columns(waves, 0, 2), graph.const(np.repeat(grid[:, 2:], 2, axis=1)[None]))
    places = graph.op("Add", shifts, graph.const(center[None]))
    sizes = graph.op(
        "Mul", graph.op("Exp", graph.columns(waves, 2, 4)), graph.const(np.repeat(grid[:, 2:], 2, axis=1)[None] * 2.0)
    )
    scores = graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 4 + int(objectness) + CLASSES), 6.0, -2.2))
    parts = [places, sizes, scores]
    if extra:
        parts.append(graph.scaled(graph.columns(waves, 4 + int(objectness) + CLASSES, 4 + int(objectness) + CLASSES + extra), 40.0, 3.0))
    return graph.op("Concat", *parts, axis=2), len(grid)


def yolo(case, image, version, back, kind="float32", batch=1, size=(SIDE, SIDE), free=False, objectness=False, extra=0, task="detect", masks=0):
    """v8 and later `[batch, 4 + classes, candidates]`; v5 `[batch, candidates x 3, 5 + classes]`. A batch of -1 is
    free."""
    graph = Graph()
    name = "images"
    pixels = graph.op("Cast", name, to=F32) if kind == "float16" else name
    canvas, ratio, new, pad = letterbox(image, *size, 114, stride=32 if free else None)
    run_size = canvas.shape[1], canvas.shape[0]
    features = graph.features(pixels, batch=batch)
    table, count = dense_table(graph, features, run_size, 3 if objectness else 1, extra, objectness, batch=batch)
    if not objectness:
        table = graph.op("Transpose", table, perm=[0, 2, 1])
    graph.op(*(("Cast", table) if kind == "float16" else ("Identity", table)), outputs=["output0"], **({"to": F16} if kind == "float16" else {}))
    width = 4 + int(objectness) + CLASSES + extra
    shape = [batch, count, width] if objectness else [batch, width, count]
    dims = ["batch", 3, "height", "width"] if free else [batch, 3, size[1], size[0]]
    if free:
        shape = [str(side) if side == count else side for side in shape]
    if batch == -1:
        dims, shape, batch = ["batch", *dims[1:]], ["batch", *shape[1:]], 1
    element = F16 if kind == "float16" else F32
    outputs = [("output0", element, shape)]
    if masks:
        graph.op("Reshape", graph.waves(features, masks, 64, 5), graph.const([1, masks, 8, 8], np.int64), outputs=["output1"])
        outputs.append(("output1", F32, [1, masks, 8, 8]))
    metadata = {"stride": "32", "names": ultralytics()["names"]} if version is None else ultralytics(task, version, batch=str(batch))
    if size != (SIDE, SIDE):
        metadata["imgsz"] = f"[{size[1]}, {size[0]}]"
    model = graph.model([(name, element, dims)], outputs, metadata)
    tensor = np.repeat(planar(canvas), batch, axis=0).astype(np.float16 if kind == "float16" else np.float32)
    output = run(model, {name: tensor})["output0"][0].astype(np.float64)
    rows = output if objectness else output.T
    boxes = corners(rows[:, :4])
    first = 4 + int(objectness)
    scores = rows[:, first : first + CLASSES] * (rows[:, 4:5] if objectness else 1.0)
    classes, tops = best(scores)
    if task == "obb":
        angle = rows[:, -1]
        cos, sin = np.abs(np.cos(angle)), np.abs(np.sin(angle))
        around = np.stack([rows[:, 2] * cos + rows[:, 3] * sin, rows[:, 2] * sin + rows[:, 3] * cos], axis=1)
        boxes = corners(np.concatenate([rows[:, :2], around], axis=1))
    if back is exact_padding:
        boxes = exact_padding(boxes, image, ratio, new, pad, run_size)
    else:
        boxes = back(boxes, image, ratio, new, pad)
    # Suppression does not depend on the scale.
    found = detections(boxes, classes, tops, 0.25, nms=0.45 if objectness else 0.7)
    write(case, model, found, 0.25)


def final_rows(graph, features, count, order, size, normalized=False, seed=3):
    """Boxes with one class and score each, as columns in `order`, sorted by score: `[1, count, ...]`."""
    waves = graph.waves(features, count, 6, seed)
    extent = np.array([1.0, 1.0]) if normalized else np.array(size, np.float64)
    places = graph.op("Mul", graph.scaled(graph.columns(waves, 0, 2), 0.4, 0.5), graph.const(extent))
    sizes = graph.op("Mul", graph.scaled(graph.columns(waves, 2, 4), 0.15, 0.2), graph.const(extent))
    half = graph.op("Mul", sizes, graph.const(0.5))
    low, high = graph.op("Sub", places, half), graph.op("Add", places, half)
    scores, _ = graph.op(
        "TopK", graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 5), 5.0, 0.0)), graph.const([count], np.int64),
        axis=1, outputs=["best", "which"],
    ), None
    labels = graph.op("Floor", graph.scaled(graph.columns(waves, 5, 6), 1.49, 1.5))
    labels = graph.op("Min", graph.op("Max", labels, graph.const(0.0)), graph.const(float(CLASSES - 1)))
    parts = {"corners": [low, high], "center": [places, sizes], "score": ["best"], "class": [labels]}
    zero = graph.op("Mul", labels, graph.const(0.0))
    parts["image"] = [zero]
    return graph.op("Concat", *[part for name in order for part in parts[name]], axis=2)


def end_to_end(case, image, order, metadata, rank=3, back=None, normalized=False, layout="nchw", kind=F32, beside=None):
    graph = Graph()
    if kind == U8 or layout == "nhwc":
        pixels, scale = graph.op("Cast", "image", to=F32) if kind == U8 else "image", 1 / 255
    else:
        pixels, scale = "image", 1.0
    features = graph.features(pixels, layout, scale)
    rows = final_rows(graph, features, 24, order, (SIDE, SIDE), normalized)
    width = 7 if "image" in order else 6
    graph.op("Reshape", rows, graph.const([1, 24, width] if rank == 3 else [24, width], np.int64), outputs=["output0"])
    outputs = [("output0", F32, [1, 24, width] if rank == 3 else ["rows", width])]
    if layout == "nhwc":
        graph.op("Reshape", graph.waves(features, 8, 24, 2), graph.const([1, 8, 8, 3], np.int64), outputs=["heat"])
        outputs.append(("heat", F32, [1, 8, 8, 3]))
    dims = [1, SIDE, SIDE, 3] if layout == "nhwc" else [1, 3, SIDE, SIDE]
    model = graph.model([("image", kind, dims)], outputs, metadata)
    if back is stretched:
        canvas = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        if layout == "nhwc":
            canvas = np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    else:
        canvas, ratio, new, pad = letterbox(image, SIDE, SIDE, 114)
    tensor = canvas[None].astype(np.float32) if layout == "nhwc" else planar(canvas)
    table = run(model, {"image": tensor.astype(np.uint8) if kind == U8 else tensor})["output0"].reshape(24, width).astype(np.float64)
    place = {"image": 1, "corners": 4, "center": 4, "score": 1, "class": 1}
    starts = {name: sum(place[before] for before in order[:at]) for at, name in enumerate(order)}
    first = starts.get("corners", starts.get("center"))
    boxes = table[:, first : first + 4]
    if "center" in order:
        boxes = corners(boxes)
    if normalized:
        boxes = boxes * SIDE
    boxes = stretched(boxes, image) if back is stretched else back(boxes, image, ratio, new, pad)
    found = detections(boxes, table[:, starts["class"]].astype(int), table[:, starts["score"]], 0.25)
    write(case, model, found, 0.25, beside)


def queries_8_1(image):
    """Ultralytics' RT-DETR before 8.4: `[1, queries, 4 + classes]`, center and size from 0 to 1."""
    graph = Graph()
    waves = graph.waves(graph.features("images"), 30, 4 + CLASSES, 4)
    boxes = graph.scaled(graph.columns(waves, 0, 4), 0.4, 0.45)
    scores = graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 4 + CLASSES), 5.0, -1.0))
    graph.op("Concat", boxes, scores, axis=2, outputs=["output0"])
    model = graph.model(
        [("images", F32, [1, 3, SIDE, SIDE])], [("output0", F32, [1, 30, 4 + CLASSES])], ultralytics(version="8.1.0")
    )
    table = run(model, {"images": planar(cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR))})["output0"][0].astype(np.float64)
    classes, tops = best(table[:, 4:])
    found = detections(stretched(corners(table[:, :4]) * SIDE, image), classes, tops, 0.25)
    write("ultralytics-rt-detr-8-1", model, found, 0.25)


def yolov5_maps(image):
    """Three maps `[1, 3, rows, columns, 5 + classes]` that are not decoded, with the anchors of YOLOv5's configuration."""
    anchors = [[(10, 13), (16, 30), (33, 23)], [(30, 61), (62, 45), (59, 119)], [(116, 90), (156, 198), (373, 326)]]
    graph = Graph()
    features = graph.features("images")
    outputs = []
    for level, stride in enumerate((8, 16, 32)):
        side = SIDE // stride
        waves = graph.waves(features, 3 * side * side, 5 + CLASSES, 6 + level)
        raw = graph.scaled(waves, 3.0, -0.6)
        graph.op("Reshape", raw, graph.const([1, 3, side, side, 5 + CLASSES], np.int64), outputs=[f"map{level}"])
        outputs.append((f"map{level}", F32, [1, 3, side, side, 5 + CLASSES]))
    model = graph.model([("images", F32, [1, 3, SIDE, SIDE])], outputs, {"stride": "32", "names": ultralytics()["names"]})
    canvas, ratio, new, pad = letterbox(image, SIDE, SIDE, 114)
    raw = run(model, {"images": planar(canvas)})
    boxes, scores = [], []
    for level, stride in enumerate((8, 16, 32)):
        table = sigmoid(raw[f"map{level}"][0].astype(np.float64))
        side = SIDE // stride
        for anchor in range(3):
            for row in range(side):
                for column in range(side):
                    x, y, w, h, objectness, *of_classes = table[anchor, row, column]
                    width, height = anchors[level][anchor]
                    boxes.append([(2 * x - 0.5 + column) * stride, (2 * y - 0.5 + row) * stride, (2 * w) ** 2 * width, (2 * h) ** 2 * height])
                    scores.append(np.array(of_classes) * objectness)
    classes, tops = best(np.array(scores))
    boxes = exact_padding(corners(np.array(boxes)), image, ratio, new, pad)
    write("yolov5-maps", model, detections(boxes, classes, tops, 0.25, nms=0.45), 0.25)


def yolox(image, decoded):
    graph = Graph()
    features = graph.features("images", scale=1 / 255)
    if decoded:
        table, count = dense_table(graph, features, (SIDE, SIDE), objectness=True)
        graph.op("Identity", table, outputs=["output"])
    else:
        count = len(cells((SIDE, SIDE), (8, 16, 32)))
        waves = graph.waves(features, count, 5 + CLASSES, 9)
        scores = graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 5 + CLASSES), 6.0, -1.0))
        graph.op("Concat", graph.columns(waves, 0, 4), scores, axis=2, outputs=["output"])
    model = graph.model([("images", F32, [1, 3, SIDE, SIDE])], [("output", F32, [1, count, 5 + CLASSES])])
    canvas, ratio, new, pad = letterbox(image[..., ::-1], SIDE, SIDE, 114, centered=False, rounding=int)
    table = run(model, {"images": planar(canvas, 1.0)})["output"][0].astype(np.float64)
    if not decoded:
        grid = cells((SIDE, SIDE), (8, 16, 32))
        table[:, :2] = (table[:, :2] + grid[:, :2]) * grid[:, 2:]
        table[:, 2:4] = np.exp(table[:, 2:4]) * grid[:, 2:]
    classes, tops = best(table[:, 5:] * table[:, 4:5])
    boxes = one_ratio(corners(table[:, :4]), image, ratio, new, pad)
    found = detections(boxes, classes, tops, 0.3, nms=0.65)
    names = "\n".join(NAMES) + "\n"
    write("yolox-decoded" if decoded else "yolox", model, found, 0.3, {"classes.txt": names})


def nanodet(image, plus):
    strides = (8, 16, 32, 64) if plus else (8, 16, 32)
    graph = Graph()
    features = graph.features("data", scale=0.3)
    outputs, levels = [], []
    for level, stride in enumerate(strides):
        count = len(cells((SIDE, SIDE), [stride]))
        waves = graph.waves(features, count, CLASSES + 32, 11 + level)
        scores = graph.op("Sigmoid", graph.scaled(graph.columns(waves, 0, CLASSES), 6.0, -2.5))
        bins = graph.scaled(graph.columns(waves, CLASSES, CLASSES + 32), 4.0, -0.7)
        if plus:
            levels.append(graph.op("Concat", scores, bins, axis=2))
        else:
            graph.op("Identity", scores, outputs=[f"cls_{stride}"])
            graph.op("Identity", bins, outputs=[f"dis_{stride}"])
            outputs += [(f"cls_{stride}", F32, [1, count, CLASSES]), (f"dis_{stride}", F32, [1, count, 32])]
    if plus:
        graph.op("Concat", *levels, axis=1, outputs=["output"])
        outputs = [("output", F32, [1, len(cells((SIDE, SIDE), strides)), CLASSES + 32])]
    model = graph.model([("data", F32, [1, 3, SIDE, SIDE])], outputs)
    mean, std = (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)
    # NanoDet's get_resize_matrix, with `keep_ratio` as in the configuration files.
    ratio = min(SIDE / image.shape[1], SIDE / image.shape[0])
    ratios = np.array([SIDE / image.shape[1], SIDE / image.shape[0]] if plus else [ratio, ratio])
    shift = np.zeros(2) if plus else SIDE / 2 - ratios * image.shape[1::-1] / 2
    matrix = np.array([[ratios[0], 0, shift[0]], [0, ratios[1], shift[1]], [0, 0, 1]])
    canvas = cv2.warpPerspective(np.ascontiguousarray(image[..., ::-1]), matrix, (SIDE, SIDE))
    raw = run(model, {"data": planar(canvas, 1.0, mean, std)})
    if plus:
        table = raw["output"][0].astype(np.float64)
    else:
        table = np.concatenate([np.concatenate([raw[f"cls_{s}"][0], raw[f"dis_{s}"][0]], axis=1) for s in strides]).astype(np.float64)
    grid = cells((SIDE, SIDE), strides)
    distances = (softmax(table[:, CLASSES:].reshape(-1, 4, 8)) * np.arange(8)).sum(axis=-1) * grid[:, 2:]
    points = (grid[:, :2] + (0.0 if plus else 0.5)) * grid[:, 2:]
    boxes = np.concatenate([points - distances[:, :2], points + distances[:, 2:]], axis=1)
    boxes = (boxes - np.tile(shift, 2)) / np.tile(ratios, 2)
    # Its multiclass_nms keeps every class of a box.
    found = detections(*every_class(boxes, table[:, :CLASSES]), 0.3, nms=0.6)
    write("nanodet-plus" if plus else "nanodet", model, found, 0.3, {"labels.txt": "\n".join(NAMES) + "\n"})


def mmdeploy(image):
    graph = Graph()
    rows = final_rows(graph, graph.features("input", scale=0.5), 24, ["corners", "score", "class"], (SIDE, SIDE), seed=8)
    graph.op("Identity", graph.columns(rows, 0, 5), outputs=["dets"])
    labels = graph.op("Cast", graph.columns(rows, 5, 6), to=I64)
    graph.op("Reshape", labels, graph.const([1, 24], np.int64), outputs=["labels"])
    model = graph.model([("input", F32, [1, 3, SIDE, SIDE])], [("dets", F32, [1, 24, 5]), ("labels", I64, [1, 24])])
    canvas, ratio, new, pad = letterbox(image, SIDE, SIDE, 114, centered=False, rounding=lambda side: int(side + 0.5))
    raw = run(model, {"input": planar(canvas, 1.0, (123.675, 116.28, 103.53), (58.395, 57.12, 57.375))})
    dets = raw["dets"][0].astype(np.float64)
    boxes = each_axis(dets[:, :4], image, ratio, new, pad)
    found = detections(boxes, raw["labels"][0], dets[:, 4], 0.3)
    write("mmdeploy", model, found, 0.3, {"labels.txt": "\n".join(NAMES) + "\n"})


def paddle(image):
    """`im_shape` and `scale_factor` besides the image; boxes in pixels of the image as it was."""
    graph = Graph()
    rows = final_rows(graph, graph.features("image"), 24, ["class", "score", "corners"], (SIDE, SIDE), seed=5)
    twice = graph.op("Concat", *["scale_factor"] * 2, axis=1)
    flipped = graph.op("Gather", twice, graph.const([1, 0, 3, 2], np.int64), axis=1)
    # The size of the input is used, too, and changes nothing.
    used = graph.op("Mul", graph.op("ReduceSum", "im_shape", keepdims=0), graph.const(0.0))
    boxes = graph.op("Add", graph.op("Div", graph.columns(rows, 2, 6), flipped), used)
    table = graph.op("Concat", graph.columns(rows, 0, 2), boxes, axis=2)
    graph.op("Reshape", table, graph.const([24, 6], np.int64), outputs=["boxes"])
    graph.op("Identity", graph.const([24], np.int64), outputs=["count"])
    inputs = [("im_shape", F32, [1, 2]), ("image", F32, [1, 3, SIDE, SIDE]), ("scale_factor", F32, [1, 2])]
    model = graph.model(inputs, [("boxes", F32, ["n", 6]), ("count", I64, [1])])
    canvas = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    scale = np.float32([[SIDE / image.shape[0], SIDE / image.shape[1]]])
    table = run(model, {"image": planar(canvas), "scale_factor": scale, "im_shape": np.float32([[SIDE, SIDE]])})["boxes"].astype(np.float64)
    found = detections(table[:, 2:], table[:, 0].astype(int), table[:, 1], 0.3)
    write("paddle", model, found, 0.3, {"labels.txt": "\n".join(NAMES) + "\n"})


def transformer(case, image, model_type, count):
    """`logits` and `pred_boxes` with the configuration of transformers beside the model."""
    softmaxed = model_type in ("detr", "yolos")
    graph = Graph()
    features = graph.features("pixel_values")
    waves = graph.waves(features, count, 4 + CLASSES + int(softmaxed), 14)
    graph.op("Identity", graph.scaled(graph.columns(waves, 4, 4 + CLASSES + int(softmaxed)), 5.0, -0.5), outputs=["logits"])
    graph.op("Identity", graph.scaled(graph.columns(waves, 0, 4), 0.4, 0.45), outputs=["pred_boxes"])
    free = model_type == "detr"
    dims = ["batch", 3, "height", "width"] if free else [1, 3, SIDE, SIDE]
    model = graph.model(
        [("pixel_values", F32, dims)],
        [("logits", F32, [1, count, CLASSES + int(softmaxed)]), ("pred_boxes", F32, [1, count, 4])],
    )
    if free:
        # 110 x 75 to a short side of 48: 70.4 is cut to 70.
        size, mean, std = (70, 48), *IMAGENET
        preprocessor = {"size": {"shortest_edge": 48, "longest_edge": 1333}, "image_mean": mean, "image_std": std, "do_normalize": True}
    else:
        size, mean, std = (SIDE, SIDE), (0, 0, 0), (1, 1, 1)
        preprocessor = {"size": {"height": SIDE, "width": SIDE}, "do_normalize": False}
    processor = {"detr": "DetrImageProcessor", "rt_detr": "RTDetrImageProcessor"}[model_type]
    preprocessor |= {"image_processor_type": processor, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "resample": 2}
    canvas = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))
    raw = run(model, {"pixel_values": planar(canvas, 255.0, mean, std)})
    logits = raw["logits"][0].astype(np.float64)
    boxes = corners(raw["pred_boxes"][0].astype(np.float64)) * np.array([image.shape[1], image.shape[0]] * 2)
    if softmaxed:
        classes, tops = best(softmax(logits)[:, :-1])
    else:
        scores = sigmoid(logits).ravel()
        top = np.argsort(-scores, kind="stable")[:count]
        boxes, classes, tops = boxes[top // CLASSES], top % CLASSES, scores[top]
    labels = {str(number): name for number, name in enumerate(NAMES)}
    config = {"model_type": model_type, "id2label": labels}
    beside = {"config.json": json.dumps(config), "preprocessor_config.json": json.dumps(preprocessor)}
    write(case, model, detections(boxes, classes, tops, 0.5), 0.5, beside)


def d_fine(image):
    """The authors' own export: `orig_target_sizes` besides the image."""
    graph = Graph()
    rows = final_rows(graph, graph.features("images"), 24, ["corners", "score", "class"], (SIDE, SIDE), normalized=True, seed=2)
    sizes = graph.op("Cast", "orig_target_sizes", to=F32)
    twice = graph.op("Concat", sizes, sizes, axis=1)
    graph.op("Mul", graph.columns(rows, 0, 4), twice, outputs=["boxes"])
    graph.op("Reshape", graph.columns(rows, 4, 5), graph.const([1, 24], np.int64), outputs=["scores"])
    labels = graph.op("Cast", graph.columns(rows, 5, 6), to=I64)
    graph.op("Reshape", labels, graph.const([1, 24], np.int64), outputs=["labels"])
    model = graph.model(
        [("images", F32, [1, 3, SIDE, SIDE]), ("orig_target_sizes", I64, [1, 2])],
        [("labels", I64, [1, 24]), ("boxes", F32, [1, 24, 4]), ("scores", F32, [1, 24])],
    )
    canvas = np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    raw = run(model, {"images": planar(canvas), "orig_target_sizes": np.int64([[image.shape[1], image.shape[0]]])})
    found = detections(raw["boxes"][0].astype(np.float64), raw["labels"][0], raw["scores"][0].astype(np.float64), 0.4)
    write("d-fine", model, found, 0.4, {"labels.txt": "\n".join(NAMES) + "\n"})


def tensorflow_raw(image):
    """Boxes `[1, n, 1, 4]` from top to right and scores `[1, n, classes]`, before suppression."""
    graph = Graph()
    pixels = graph.op("Cast", "image", to=F32)
    waves = graph.waves(graph.features(pixels, "nhwc", 1 / 255), 1100, 4 + CLASSES, 3)
    places = graph.scaled(graph.columns(waves, 0, 2), 0.4, 0.5)
    sizes = graph.scaled(graph.columns(waves, 2, 4), 0.08, 0.12)
    boxes = graph.op("Concat", graph.op("Sub", places, sizes), graph.op("Add", places, sizes), axis=2)
    graph.op("Reshape", boxes, graph.const([1, 1100, 1, 4], np.int64), outputs=["boxes"])
    graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 4 + CLASSES), 6.0, -5.0), outputs=["scores"])
    model = graph.model(
        [("image", U8, [1, "height", "width", 3])], [("boxes", F32, [1, 1100, 1, 4]), ("scores", F32, [1, 1100, CLASSES])]
    )
    raw = run(model, {"image": image[None]})
    top, left, bottom, right = raw["boxes"][0, :, 0].astype(np.float64).T
    boxes = np.stack([left, top, right, bottom], axis=1) * np.array([image.shape[1], image.shape[0]] * 2)
    found = detections(*every_class(boxes, raw["scores"][0].astype(np.float64)), 0.5, nms=0.6)
    write("tensorflow-raw", model, found, 0.5, {"labels.txt": "\n".join(NAMES) + "\n"})


if __name__ == "__main__":
    image = scene()
    yolo("yolov8", image, "8.4.190", each_axis)
    yolo("yolov8-older", image, "8.4.50", one_ratio)
    yolo("yolov8-free-size", image, "8.4.190", each_axis, free=True)
    yolo("yolov8-wide", image, "8.4.190", each_axis, size=(96, 64))
    yolo("yolov8-batch-of-four", image, "8.4.190", each_axis, batch=4)
    yolo("yolov8-free-batch", image, "8.4.190", each_axis, batch=-1)
    yolo("yolov8-half", image, "8.4.190", each_axis, kind="float16")
    yolo("yolov8-pose", image, "8.4.190", each_axis, extra=6, task="pose")
    yolo("yolov8-obb", image, "8.4.190", each_axis, extra=1, task="obb")
    yolo("yolov8-seg", image, "8.4.190", each_axis, extra=8, masks=8, task="segment")
    yolo("yolov5", image, None, exact_padding, objectness=True)
    yolo("yolov5-half", image, None, exact_padding, objectness=True, kind="float16")
    end_to_end("ultralytics-end-to-end", image, ["corners", "score", "class"], ultralytics(version="8.4.190"), back=each_axis)
    end_to_end("ultralytics-rt-detr", image, ["center", "score", "class"], ultralytics(version="8.4.190"), back=stretched, normalized=True)
    end_to_end("yolov7-end-to-end", image, ["image", "corners", "class", "score"], {}, rank=2, back=exact_padding)
    end_to_end("centernet", image, ["corners", "score", "class"], {}, back=stretched, layout="nhwc", beside={"labels.txt": "\n".join(NAMES) + "\n"})
    queries_8_1(image)
    yolov5_maps(image)
    yolox(image, decoded=False)
    yolox(image, decoded=True)
    nanodet(image, plus=True)
    nanodet(image, plus=False)
    mmdeploy(image)
    paddle(image)
    transformer("detr", image, "detr", 30)
    transformer("rt-detr", image, "rt_detr", 30)
    d_fine(image)
    tensorflow_raw(image)
