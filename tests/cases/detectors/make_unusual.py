"""Tiny graphs with the outputs of less common exporters, and the predictions by the exporter's own rules.

usage: python make_unusual.py [CASE …]        (packages as for make.py)
Each function starts with the exporter's published rule. Cases whose preprocessing is in neither a file nor the outputs
have `output` instead of detections: the fields of the card determined by the outputs. Cases that must not be guessed
have `refused`: a part of the reason.
"""

import importlib.util
import json
import pathlib
import sys

import cv2
import numpy as np
import onnx
from PIL import Image

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("detectors", HERE / "make.py")
d = importlib.util.module_from_spec(spec)
spec.loader.exec_module(d)

F32, U8, I64, I32 = d.F32, d.U8, d.I64, onnx.TensorProto.INT32
STRIDES = (8, 16, 32)
IMAGENET = d.IMAGENET
COCO = 80


def parts(graph, features, count, classes, extent, seed, grid=None):
    """Center, size, and a score from 0 to 1 for each class: `[1, count, …]` each."""
    waves = graph.waves(features, count, 4 + classes, seed)
    if grid is None:
        extent = np.array(extent, np.float64)
        center = graph.op("Mul", graph.scaled(graph.columns(waves, 0, 2), 0.4, 0.5), graph.const(extent))
        size = graph.op("Mul", graph.scaled(graph.columns(waves, 2, 4), 0.08, 0.14), graph.const(extent))
    else:
        stride = np.repeat(grid[:, 2:], 2, axis=1)[None]
        shift = graph.op("Mul", graph.columns(waves, 0, 2), graph.const(stride))
        center = graph.op("Add", shift, graph.const(((grid[:, :2] + 0.5) * grid[:, 2:])[None]))
        size = graph.op("Mul", graph.op("Exp", graph.columns(waves, 2, 4)), graph.const(2.0 * stride))
    scores = graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 4 + classes), 14.0, -12.5))
    return center, size, scores


def as_corners(graph, center, size, first="x"):
    half = graph.op("Mul", size, graph.const(0.5))
    corners = [graph.op("Sub", center, half), graph.op("Add", center, half)]
    if first == "y":
        corners = [graph.op("Gather", corner, graph.const([1, 0], np.int64), axis=2) for corner in corners]
    return graph.op("Concat", *corners, axis=2)


def reshaped(graph, table, shape, name):
    return graph.op("Reshape", table, graph.const(shape, np.int64), outputs=[name])


def named(graph, value, name):
    return graph.op("Identity", value, outputs=[name])


def swapped(graph, table, name):
    return graph.op("Transpose", table, perm=[0, 2, 1], outputs=[name])


def write_json(case, model, expected, beside=None):
    folder = HERE / case
    folder.mkdir(exist_ok=True)
    onnx.checker.check_model(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for name, text in (beside or {}).items():
        (folder / name).write_text(text)
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    print(f"{case}: {json.dumps(expected)[:100]}")


def write(case, model, found, beside=None, **more):
    """The best of `found`, as many as leave the widest gap to the score of the next."""
    gaps = {count: found[count - 1]["score"] - found[count]["score"] for count in range(20, min(len(found), 80))}
    if gaps:
        count = max(gaps, key=gaps.get)
        min_score = (found[count - 1]["score"] + found[count]["score"]) / 2
    else:
        count, min_score = len(found), 0.005
    d.write(case, model, found[:count], min_score, beside, **more)


def in_rows(tensor):
    return tensor[0].reshape(tensor.shape[1], -1).astype(np.float64)


def ranked(boxes, scores, nms=None, limit=None, every=False):
    if every:
        boxes, labels, tops = d.every_class(boxes, scores)
    else:
        labels, tops = d.best(scores)
    return d.detections(boxes, labels, tops, 0.005, nms, limit)


# Boxes, and a score per class, in separate outputs.


def yolo_nas(image, case="yolo-nas", classes=COCO):
    """super-gradients, `model.export` without postprocessing: corners in input pixels, then scores. RGB/255 in a centered
    letterbox filled with 114 (its margin of four pixels is left out here), every class of a box
    (`multi_label_per_box`), suppression at 0.7."""
    side, grid = 256, d.cells((256, 256), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("input"), len(grid), classes, None, 21, grid)
    named(graph, as_corners(graph, center, size), "904")
    named(graph, scores, "913")
    model = graph.model([("input", F32, [1, 3, side, side])], [("904", F32, [1, len(grid), 4]), ("913", F32, [1, len(grid), classes])])
    canvas, ratio, new, pad = d.letterbox(image, side, side, 114)
    raw = d.run(model, {"input": d.planar(canvas)})
    boxes = d.one_ratio(in_rows(raw["904"]), image, ratio, new, pad)
    write(case, model, ranked(boxes, in_rows(raw["913"]), 0.7, every=True))


def damo_yolo(image):
    """DAMO-YOLO's converter without end2end: scores, then corners in input pixels. RGB 0..255, resized by OpenCV
    ignoring the aspect ratio (`keep_ratio` is off), every class of a box, suppression at 0.7."""
    side, grid = 256, d.cells((256, 256), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("images", scale=1 / 255), len(grid), COCO, None, 22, grid)
    named(graph, scores, "output")
    named(graph, as_corners(graph, center, size), "1068")
    model = graph.model([("images", F32, [1, 3, side, side])], [("output", F32, [1, len(grid), COCO]), ("1068", F32, [1, len(grid), 4])])
    canvas = cv2.resize(image, (side, side), interpolation=cv2.INTER_LINEAR)
    raw = d.run(model, {"images": d.planar(canvas, 1.0)})
    boxes = d.stretched(in_rows(raw["1068"]), image, (side, side))
    write("damo-yolo", model, ranked(boxes, in_rows(raw["output"]), 0.7, every=True))


def yolov4(image):
    """pytorch-YOLOv4: `boxes` [1, n, 1, 4], corners from 0 to 1, and `confs` [1, n, classes], objectness included.
    RGB/255, resized by OpenCV ignoring the aspect ratio, suppression at 0.6."""
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("input"), 1260, COCO, (1, 1), 23)
    reshaped(graph, as_corners(graph, center, size), [1, 1260, 1, 4], "boxes")
    named(graph, scores, "confs")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("boxes", F32, [1, 1260, 1, 4]), ("confs", F32, [1, 1260, COCO])])
    raw = d.run(model, {"input": d.planar(cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR))})
    boxes = d.stretched(in_rows(raw["boxes"]) * 64, image)
    write("yolov4", model, ranked(boxes, in_rows(raw["confs"]), 0.6))


def yolov3_zoo(image, case, shape):
    """The ONNX Model Zoo's YOLOv3 and tiny YOLOv3: told height and width of the image; boxes from the top in pixels of
    it, scores as [1, 80, n], and image, class and box of those that suppression keeps. RGB/255, resized by Pillow to
    the middle of 416 x 416 filled with 128."""
    graph = d.Graph()
    count = 1260
    center, size, scores = parts(graph, graph.features("input_1"), count, COCO, (1, 1), 24)
    boxes = as_corners(graph, center, size, "y")
    graph.op("Mul", boxes, graph.op("Concat", "image_shape", "image_shape", axis=1), outputs=["boxes"])
    swapped(graph, scores, "scores")
    limits = graph.const([2], np.int64), graph.const([0.5]), graph.const([0.75])
    kept = graph.op("Cast", graph.op("NonMaxSuppression", "boxes", "scores", *limits), to=I32)
    reshaped(graph, kept, shape, "indices")
    model = graph.model(
        [("input_1", F32, ["N", 3, "height", "width"]), ("image_shape", F32, ["N", 2])],
        [("boxes", F32, ["N", count, 4]), ("scores", F32, ["N", COCO, count]), ("indices", I32, [None] * len(shape))],
    )
    height, width = image.shape[:2]
    scale = min(416 / width, 416 / height)
    new = int(width * scale), int(height * scale)
    canvas = Image.new("RGB", (416, 416), (128, 128, 128))
    canvas.paste(Image.fromarray(image).resize(new, Image.Resampling.BICUBIC), ((416 - new[0]) // 2, (416 - new[1]) // 2))
    raw = d.run(model, {"input_1": d.planar(np.asarray(canvas)), "image_shape": np.array([[height, width]], np.float32)})
    _, labels, rows = raw["indices"].reshape(-1, 3).T
    boxes = raw["boxes"][0].astype(np.float64)[rows][:, [1, 0, 3, 2]]
    d.write(case, model, d.detections(boxes, labels, raw["scores"][0].astype(np.float64)[labels, rows], 0.75), 0.75)


def tensorflow_raw_coco(image):
    """TF Object Detection API, `raw_detection_boxes` and `raw_detection_scores`: from the top, from 0 to 1; the class
    is COCO's id. 8-bit RGB of any size, suppression at 0.6."""
    graph = d.Graph()
    pixels = graph.op("Cast", "image", to=F32)
    center, size, scores = parts(graph, graph.features(pixels, "nhwc", 1 / 255), 1917, 91, (1, 1), 25)
    named(graph, as_corners(graph, center, size, "y"), "raw_detection_boxes")
    named(graph, scores, "raw_detection_scores")
    model = graph.model(
        [("image", U8, [1, "height", "width", 3])],
        [("raw_detection_boxes", F32, [1, 1917, 4]), ("raw_detection_scores", F32, [1, 1917, 91])],
    )
    raw = d.run(model, {"image": image[None]})
    boxes = in_rows(raw["raw_detection_boxes"])[:, [1, 0, 3, 2]] * np.array([image.shape[1], image.shape[0]] * 2)
    write("tensorflow-raw-coco", model, ranked(boxes, in_rows(raw["raw_detection_scores"]), 0.6, every=True))


def nanodet_coco(image, plus):
    """NanoDet with COCO's 80 classes and no label file; otherwise as in make.py."""
    before = d.CLASSES, d.write, d.detections
    d.CLASSES = COCO
    d.detections = lambda boxes, classes, scores, _, nms: before[2](boxes, classes, scores, 0.2, nms)

    def write_best(case, model, found, *_):
        d.write = before[1]
        write(f"{case}-coco", model, found)

    d.write = write_best
    d.nanodet(image, plus)
    d.CLASSES, d.write, d.detections = before


def ultraface(image):
    """UltraFace (and pytorch-ssd): `scores` [1, n, 2] after the softmax, the background first, and `boxes` as corners
    from 0 to 1. RGB, (pixel - 127) / 128, resized by OpenCV ignoring the aspect ratio, suppression at 0.5."""
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("input", scale=0.5), 1105, 1, (1, 1), 26)
    rest = graph.op("Sub", graph.const(1.0), scores)
    graph.op("Concat", rest, scores, axis=2, outputs=["scores"])
    named(graph, as_corners(graph, center, size), "boxes")
    model = graph.model([("input", F32, [1, 3, 48, 64])], [("scores", F32, [1, 1105, 2]), ("boxes", F32, [1, 1105, 4])])
    canvas = cv2.resize(image, (64, 48), interpolation=cv2.INTER_LINEAR)
    raw = d.run(model, {"input": d.planar(canvas, 1.0, (127,) * 3, (128,) * 3)})
    boxes = d.stretched(in_rows(raw["boxes"]) * np.array([64, 48] * 2), image, (64, 48))
    write("ultraface", model, ranked(boxes, in_rows(raw["scores"])[:, 1:], 0.5))


def ppyoloe_raw():
    """PaddleDetection exported with `exclude_nms`: corners [1, n, 4], divided by the scale factor, and scores
    [1, classes, n]."""
    side, grid = 256, d.cells((256, 256), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("image"), len(grid), COCO, None, 27, grid)
    twice = graph.op("Concat", *["scale_factor"] * 2, axis=1)
    flipped = graph.op("Gather", twice, graph.const([1, 0, 3, 2], np.int64), axis=1)
    graph.op("Div", as_corners(graph, center, size), flipped, outputs=["boxes"])
    swapped(graph, scores, "scores")
    model = graph.model(
        [("image", F32, [1, 3, side, side]), ("scale_factor", F32, [1, 2])],
        [("boxes", F32, [1, len(grid), 4]), ("scores", F32, [1, COCO, len(grid)])],
    )
    output = {"boxes": "boxes", "scores": "scores", "box_format": "xyxy", "box_space": "image-pixels", "activation": None}
    write_json("ppyoloe-raw", model, {"output": output, "auxiliary": {"scale_factor": "scale-factor"}})


# Transformers.


def logits_and_boxes(graph, features, count, columns, shift, seed):
    waves = graph.waves(features, count, 4 + columns, seed)
    logits = graph.scaled(graph.columns(waves, 4, 4 + columns), 5.0, -0.5)
    if shift is not None:
        logits = graph.op("Add", logits, graph.const(shift))
    return logits, graph.scaled(graph.columns(waves, 0, 4), 0.4, 0.45)


def detr_bare(image):
    """transformers' DETR without its configuration: `logits`, whose last is “no object”, `pred_boxes` as center and size
    from 0 to 1. ImageNet's mean and std, resized by Pillow."""
    graph = d.Graph()
    no_object = np.array([0.0] * 7 + [4.0])
    logits, boxes = logits_and_boxes(graph, graph.features("pixel_values"), 30, 8, no_object, 31)
    named(graph, logits, "logits")
    named(graph, boxes, "pred_boxes")
    named(graph, graph.waves(graph.features("pixel_values"), 30, 4, 5), "last_hidden_state")
    model = graph.model(
        [("pixel_values", F32, [1, 3, 64, 64])],
        [("logits", F32, [1, 30, 8]), ("pred_boxes", F32, [1, 30, 4]), ("last_hidden_state", F32, [1, 30, 4])],
    )
    canvas = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR))
    raw = d.run(model, {"pixel_values": d.planar(canvas, 255.0, *IMAGENET)})
    boxes = d.stretched(d.corners(in_rows(raw["pred_boxes"])) * 64, image)
    write("detr-bare", model, ranked(boxes, d.softmax(in_rows(raw["logits"]))[:, :-1]))


def detr_fixed_mask(image):
    """Optimum's DETR with a `pixel_mask` of 64 x 64 for images of any size: all ones."""
    graph = d.Graph()
    logits, boxes = logits_and_boxes(graph, graph.features("pixel_values"), 30, d.CLASSES + 1, None, 14)
    mean = graph.op("ReduceMean", graph.op("Cast", "pixel_mask", to=F32), keepdims=0)
    graph.op("Mul", logits, mean, outputs=["logits"])
    named(graph, boxes, "pred_boxes")
    model = graph.model(
        [("pixel_values", F32, ["batch", 3, "height", "width"]), ("pixel_mask", I64, ["batch", 64, 64])],
        [("logits", F32, [1, 30, d.CLASSES + 1]), ("pred_boxes", F32, [1, 30, 4])],
    )
    canvas = np.asarray(Image.fromarray(image).resize((70, 48), Image.Resampling.BILINEAR))
    raw = d.run(model, {"pixel_values": d.planar(canvas, 255.0, *IMAGENET), "pixel_mask": np.ones((1, 64, 64), np.int64)})
    boxes = d.corners(in_rows(raw["pred_boxes"])) * np.array([image.shape[1], image.shape[0]] * 2)
    found = ranked(boxes, d.softmax(in_rows(raw["logits"]))[:, :-1])
    config = {"model_type": "detr", "id2label": {str(number): name for number, name in enumerate(d.NAMES)}}
    preprocessor = {
        "image_processor_type": "DetrImageProcessor", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
        "resample": 2, "size": {"shortest_edge": 48, "longest_edge": 1333}, "image_mean": IMAGENET[0],
        "image_std": IMAGENET[1], "do_normalize": True,
    }
    beside = {"config.json": json.dumps(config), "preprocessor_config.json": json.dumps(preprocessor)}
    write("detr-fixed-mask", model, found, beside)


def rf_detr(image):
    """Roboflow's RF-DETR: `dets` as center and size from 0 to 1, `labels` [1, n, 91] before the sigmoid, whose index is
    COCO's id; the best 300 (here as many as queries) over queries and classes. ImageNet's mean and std, and
    torchvision's antialiased resize of floats, which differs from Pillow's by the rounding to 8 bits alone."""
    graph = d.Graph()
    logits, boxes = logits_and_boxes(graph, graph.features("input"), 30, 91, np.array(-2.5), 33)
    named(graph, boxes, "dets")
    named(graph, logits, "labels")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("dets", F32, [1, 30, 4]), ("labels", F32, [1, 30, 91])])
    canvas = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR))
    raw = d.run(model, {"input": d.planar(canvas, 255.0, *IMAGENET)})
    boxes = d.stretched(d.corners(in_rows(raw["dets"])) * 64, image)
    write("rf-detr", model, ranked(boxes, d.sigmoid(in_rows(raw["labels"])), limit=30, every=True))


def rt_detr_all_outputs():
    """transformers' RT-DETR as Optimum exports it with all outputs: those of the encoder are boxes with scores, too."""
    graph = d.Graph()
    features = graph.features("pixel_values")
    outputs = []
    for number, (of_boxes, of_scores, count) in enumerate([("enc_topk_bboxes", "enc_topk_logits", 30), ("pred_boxes", "logits", 30), ("enc_outputs_coord_logits", "enc_outputs_class", 84)]):
        logits, boxes = logits_and_boxes(graph, features, count, COCO, np.array(-2.0), 34 + number)
        named(graph, boxes, of_boxes)
        named(graph, logits, of_scores)
        outputs += [(of_scores, F32, [1, count, COCO]), (of_boxes, F32, [1, count, 4])]
    model = graph.model([("pixel_values", F32, [1, 3, 64, 64])], outputs)
    output = {"boxes": "pred_boxes", "scores": "logits", "activation": "sigmoid", "box_format": "cxcywh", "box_space": "normalized", "label_choice": "all"}
    write_json("rt-detr-all-outputs", model, {"output": output})


# Classes that the graph has chosen.


def final_parts(graph, features, count, extent, seed, filled=None):
    """Corners, scores and classes of `count` boxes; rows from `filled` on are -1."""
    rows = d.final_rows(graph, features, count, ["corners", "score", "class"], extent, extent == (1, 1), seed)
    if filled is not None:
        is_box = graph.const((np.arange(count) < filled)[None, :, None].astype(np.float32))
        rows = graph.op("Sub", graph.op("Mul", graph.op("Add", rows, graph.const(1.0)), is_box), graph.const(1.0))
    return [graph.columns(rows, *ends) for ends in ((0, 4), (4, 5), (5, 6))]


def custom_vision(image):
    """Azure Custom Vision, compact (S1): `detected_boxes` as corners from 0 to 1, `detected_classes` and
    `detected_scores`. Without metadata RGB/255, resized by Pillow's default, which is bicubic."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("image_tensor"), 24, (1, 1), 41)
    named(graph, boxes, "detected_boxes")
    reshaped(graph, graph.op("Cast", labels, to=I64), [1, 24], "detected_classes")
    reshaped(graph, scores, [1, 24], "detected_scores")
    model = graph.model(
        [("image_tensor", F32, [1, 3, 64, 64])],
        [("detected_boxes", F32, [1, 24, 4]), ("detected_classes", I64, [1, 24]), ("detected_scores", F32, [1, 24])],
    )
    raw = d.run(model, {"image_tensor": d.planar(np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BICUBIC)))})
    boxes = d.stretched(in_rows(raw["detected_boxes"]) * 64, image)
    found = d.detections(boxes, raw["detected_classes"][0], raw["detected_scores"][0].astype(np.float64), 0.25)
    d.write("custom-vision", model, found, 0.25, {"labels.txt": "\n".join(d.NAMES) + "\n"})


def counted(image, case, names, kind=F32, filled=None, count_type=I32):
    """A count, boxes as corners in input pixels, scores and classes, in a letterbox filled with 114: YOLO's `--end2end`
    for ONNX Runtime and MMYOLO (names differ); YOLO-NAS, whose 8-bit input is divided inside and which fills up
    with -1."""
    of_count, of_boxes, of_scores, of_classes = names
    graph = d.Graph()
    pixels = graph.op("Cast", "images", to=F32) if kind == U8 else "images"
    features = graph.features(pixels, scale=1 / 255 if kind == U8 else 1.0)
    boxes, scores, labels = final_parts(graph, features, 24, (64, 64), 42, filled)
    number = graph.op("Cast", graph.const([[filled or 24]], np.int64), to=count_type)
    named(graph, number, of_count)
    named(graph, boxes, of_boxes)
    reshaped(graph, scores, [1, 24], of_scores)
    reshaped(graph, graph.op("Cast", labels, to=count_type), [1, 24], of_classes)
    outputs = [(of_count, count_type, [1, 1]), (of_boxes, F32, [1, 24, 4]), (of_scores, F32, [1, 24]), (of_classes, count_type, [1, 24])]
    model = graph.model([("images", kind, [1, 3, 64, 64])], outputs)
    canvas, ratio, new, pad = d.letterbox(image, 64, 64, 114)
    tensor = d.planar(canvas, 1.0).astype(np.uint8) if kind == U8 else d.planar(canvas)
    raw = d.run(model, {"images": tensor})
    valid = slice(0, int(raw[of_count].item()))
    boxes = d.one_ratio(in_rows(raw[of_boxes])[valid], image, ratio, new, pad)
    found = d.detections(boxes, raw[of_classes][0][valid], raw[of_scores][0][valid].astype(np.float64), 0.25)
    d.write(case, model, found, 0.25, {"labels.txt": "\n".join(d.NAMES) + "\n"})


def yolo_world(image, case, seen_in_probes):
    """YOLO-World and MMYOLO with suppression for ONNX Runtime: a count, boxes as corners in input pixels, scores and
    classes, and a last row that fills up: a box of zeros, a score of 0 and class -1. RGB/255, in a letterbox filled with
    114. Test images without colors leave that row alone in one of the cases."""
    graph = d.Graph()
    features = graph.features("images")
    boxes, scores, labels = final_parts(graph, features, 24, (64, 64), 48)
    kept = graph.op("Greater", scores, graph.const(0.25))
    if not seen_in_probes:
        red, _, blue = (graph.op("Gather", features, graph.const([at], np.int64), axis=1) for at in (9, 10, 11))
        color = graph.op("Div", graph.op("Abs", graph.op("Sub", red, blue)), graph.op("Add", red, blue))
        is_colorful = graph.op("Unsqueeze", graph.op("Greater", color, graph.const(0.1)), graph.const([1], np.int64))
        kept = graph.op("And", kept, is_colorful)
    count = graph.op("ReduceSum", graph.op("Cast", kept, to=I64), graph.const([1, 2], np.int64), keepdims=0)
    graph.op("Unsqueeze", count, graph.const([1], np.int64), outputs=["num_dets"])
    condition = graph.op("Reshape", kept, graph.const([24], np.int64))
    for name, value, width, filler in (("boxes", boxes, 4, 0.0), ("scores", scores, 1, 0.0), ("labels", labels, 1, -1.0)):
        rows = graph.op("Compress", value, condition, axis=1)
        table = graph.op("Concat", rows, graph.const(np.full((1, 1, width), filler)), axis=1)
        if name == "boxes":
            named(graph, table, name)
        else:
            row = graph.op("Squeeze", table, graph.const([2], np.int64))
            graph.op("Cast", row, to=I32 if name == "labels" else F32, outputs=[name])
    outputs = [("num_dets", I64, [1, 1]), ("boxes", F32, [1, "n", 4]), ("scores", F32, [1, "n"]), ("labels", I32, [1, "n"])]
    model = graph.model([("images", F32, [1, 3, 64, 64])], outputs)
    canvas, ratio, new, pad = d.letterbox(image, 64, 64, 114)
    raw = d.run(model, {"images": d.planar(canvas)})
    valid = slice(0, int(raw["num_dets"].item()))
    boxes = d.one_ratio(in_rows(raw["boxes"])[valid], image, ratio, new, pad)
    found = d.detections(boxes, raw["labels"][0][valid], raw["scores"][0][valid].astype(np.float64), 0.25)
    d.write(case, model, found, 0.25, {"labels.txt": "\n".join(d.NAMES) + "\n"})


def pipeline_json(mean, std, resize=None, divisor=32):
    transforms = [
        {"type": "LoadImageFromFile", "backend_args": None},
        resize or {"type": "Resize", "keep_ratio": False, "size": [64, 64]},
        {"type": "Normalize", "mean": mean, "std": std, "to_rgb": False},
        {"type": "Pad", "size_divisor": divisor},
        {"type": "DefaultFormatBundle"},
        {"type": "Collect", "keys": ["img"], "meta_keys": ["scale_factor", "pad_shape"]},
    ]
    preprocess = {"type": "Task", "module": "Transform", "name": "Preprocess", "input": ["img"], "output": ["prep_output"], "transforms": transforms}
    inference = {"name": "rtmdet", "type": "Task", "module": "Net", "input": ["prep_output"], "output": ["infer_output"]}
    return json.dumps({"pipeline": {"input": ["img"], "output": ["post_output"], "tasks": [preprocess, inference]}})


def mmdeploy_pipeline(image):
    """MMDeploy's static export with `pipeline.json`: [1, n, 5] of corners and score, and classes. BGR with mean and std,
    resized by OpenCV ignoring the aspect ratio."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("input", scale=0.5), 24, (64, 64), 49)
    graph.op("Concat", boxes, scores, axis=2, outputs=["dets"])
    reshaped(graph, graph.op("Cast", labels, to=I64), [1, 24], "labels")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("dets", F32, [1, 24, 5]), ("labels", I64, [1, 24])])
    canvas = cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR)[..., ::-1]
    mean, std = [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]
    raw = d.run(model, {"input": d.planar(canvas, 1.0, mean, std)})
    dets = in_rows(raw["dets"])
    found = d.detections(d.stretched(dets[:, :4], image), raw["labels"][0], dets[:, 4], 0.3)
    d.write("mmdeploy-pipeline", model, found, 0.3, {"pipeline.json": pipeline_json(mean, std), "labels.txt": "\n".join(d.NAMES) + "\n"})


def otx(image):
    """OTX (Geti): as MMDeploy, with OpenVINO's `model_info` in the metadata. RGB, resized by OpenCV ignoring the aspect
    ratio."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("image"), 24, (96, 64), 93)
    graph.op("Concat", boxes, scores, axis=2, outputs=["boxes"])
    reshaped(graph, graph.op("Cast", labels, to=I64), [1, 24], "labels")
    info = {
        "mean_values": "0.0 0.0 0.0", "scale_values": "255.0 255.0 255.0", "resize_type": "standard", "pad_value": "0",
        "reverse_input_channels": "False", "otx_version": "2.4.0", "labels": " ".join(d.NAMES),
        "label_info": json.dumps({"label_names": d.NAMES}),
    }
    outputs = [("boxes", F32, [1, 24, 5]), ("labels", I64, [1, 24])]
    metadata = {f"model_info {key}": value for key, value in info.items()}
    model = graph.model([("image", F32, [1, 3, 64, 96])], outputs, metadata)
    raw = d.run(model, {"image": d.planar(cv2.resize(image, (96, 64), interpolation=cv2.INTER_LINEAR))})
    table = in_rows(raw["boxes"])
    found = d.detections(d.stretched(table[:, :4], image, (96, 64)), raw["labels"][0], table[:, 4], 0.3)
    d.write("otx", model, found, 0.3)


def roboflow(image):
    """Roboflow's YOLOv8 weights: no metadata, but `environment.json`. RGB/255, resized by OpenCV ignoring the aspect
    ratio, suppression at 0.7 as in Ultralytics."""
    graph = d.Graph()
    table, count = d.dense_table(graph, graph.features("images"), (64, 64), seed=94)
    swapped(graph, table, "output0")
    model = graph.model([("images", F32, [1, 3, 64, 64])], [("output0", F32, [1, 4 + len(d.NAMES), count])])
    raw = d.run(model, {"images": d.planar(cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR))})["output0"][0].T
    boxes = d.stretched(d.corners(raw[:, :4].astype(np.float64)), image)
    found = ranked(boxes, raw[:, 4:].astype(np.float64), 0.7)
    steps = {"auto-orient": {"enabled": True}, "resize": {"enabled": True, "width": 64, "height": 64, "format": "Stretch to"}}
    config = {"CLASS_MAP": {str(i): name for i, name in enumerate(d.NAMES)}, "PREPROCESSING": json.dumps(steps)}
    write("roboflow", model, found, {"environment.json": json.dumps(config)})


def coco_by_number(image):
    """MMDeploy without names: the classes begin at 0, even if a test image shows only later ones, and end before 80, as
    COCO's do."""
    graph = d.Graph()
    boxes, scores, _ = final_parts(graph, graph.features("input"), 78, (64, 64), 95)
    graph.op("Concat", boxes, scores, axis=2, outputs=["dets"])
    reshaped(graph, graph.const(np.arange(2, 80), np.int64), [1, 78], "labels")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("dets", F32, [1, 78, 5]), ("labels", I64, [1, 78])])
    write_json("coco-by-number", model, {"labels": "coco-80", "output": {"class_offset": 0}})


def paddle_config(image):
    """PaddleDetection with `infer_cfg.yml`: class, score and corners in pixels of the image as it was. RGB/255 with mean
    and std, resized by OpenCV's linear interpolation."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("image"), 24, (64, 64), 50)
    twice = graph.op("Concat", *["scale_factor"] * 2, axis=1)
    flipped = graph.op("Gather", twice, graph.const([1, 0, 3, 2], np.int64), axis=1)
    table = graph.op("Concat", labels, scores, graph.op("Div", boxes, flipped), axis=2)
    reshaped(graph, table, [24, 6], "boxes")
    graph.op("Identity", graph.const([24], np.int64), outputs=["count"])
    inputs = [("image", F32, [1, 3, 64, 64]), ("scale_factor", F32, [1, 2])]
    model = graph.model(inputs, [("boxes", F32, ["n", 6]), ("count", I64, [1])])
    canvas = cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR)
    scale = np.float32([[64 / image.shape[0], 64 / image.shape[1]]])
    table = d.run(model, {"image": d.planar(canvas, 255.0, *IMAGENET), "scale_factor": scale})["boxes"].astype(np.float64)
    found = d.detections(table[:, 2:], table[:, 0].astype(int), table[:, 1], 0.3)
    config = f"""mode: paddle
arch: YOLO
Preprocess:
- interp: 1
  keep_ratio: false
  target_size:
  - 64
  - 64
  type: Resize
- is_scale: true
  mean: {IMAGENET[0]}
  norm_type: mean_std
  std: {IMAGENET[1]}
  type: NormalizeImage
- type: Permute
label_list:
""" + "".join(f"- {name}\n" for name in d.NAMES)
    d.write("paddle-config", model, found, 0.3, {"infer_cfg.yml": config})


def mmdeploy_dynamic(image):
    """MMDeploy's dynamic export: the short side of `pipeline.json`, or less for long images, rounded half up as in mmcv's
    `rescale_size`, padded with zeros to a multiple of 32."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("input", scale=0.5), 24, (64, 64), 49)
    graph.op("Concat", boxes, scores, axis=2, outputs=["dets"])
    reshaped(graph, graph.op("Cast", labels, to=I64), [1, 24], "labels")
    model = graph.model([("input", F32, ["n", 3, "height", "width"])], [("dets", F32, ["n", 24, 5]), ("labels", I64, ["n", 24])])
    resize = {"type": "Resize", "keep_ratio": True, "size": [140, 62]}
    mean, std = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
    gain = min(140 / image.shape[1], 62 / image.shape[0])
    size = tuple(int(side * gain + 0.5) for side in image.shape[1::-1])
    canvas = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
    tensor = np.zeros((1, 3, 64, 96), np.float32)
    tensor[:, :, : size[1], : size[0]] = d.planar(canvas, 1.0, mean, std)
    raw = d.run(model, {"input": tensor})
    dets = in_rows(raw["dets"])
    found = d.detections(d.stretched(dets[:, :4], image, size), raw["labels"][0], dets[:, 4], 0.3)
    text = pipeline_json(mean, std, resize).replace('"to_rgb": false', '"to_rgb": true')
    d.write("mmdeploy-dynamic", model, found, 0.3, {"pipeline.json": text, "labels.txt": "\n".join(d.NAMES) + "\n"})


def paddle_unseen(image):
    """PaddleDetection as in `paddle-config`, but test images in 0..1 without colors leave no box."""
    graph = d.Graph()
    features = graph.features("image")
    boxes, scores, labels = final_parts(graph, features, 24, (64, 64), 50)
    twice = graph.op("Concat", *["scale_factor"] * 2, axis=1)
    flipped = graph.op("Gather", twice, graph.const([1, 0, 3, 2], np.int64), axis=1)
    table = graph.op("Concat", labels, scores, graph.op("Div", boxes, flipped), axis=2)
    red, blue = (graph.op("Gather", features, graph.const([at], np.int64), axis=1) for at in (9, 11))
    is_colorful = graph.op("Greater", graph.op("Abs", graph.op("Sub", red, blue)), graph.const(0.05))
    is_seen = graph.op("Or", is_colorful, graph.op("Greater", red, graph.const(50.0)))
    condition = graph.op("Expand", graph.op("Reshape", is_seen, graph.const([1], np.int64)), graph.const([24], np.int64))
    graph.op("Squeeze", graph.op("Compress", table, condition, axis=1), graph.const([0], np.int64), outputs=["boxes"])
    inputs = [("image", F32, [1, 3, 64, 64]), ("scale_factor", F32, [1, 2])]
    model = graph.model(inputs, [("boxes", F32, ["n", 6])])
    write_json("paddle-unseen", model, {"output": {"box_space": "image-pixels", "box_format": "xyxy"}})


def tensorflow_lite_unseen():
    """TensorFlow Lite's outputs without names that say anything; the test images leave zeros in all of them."""
    graph = d.Graph()
    features = graph.features(graph.op("Cast", "input", to=F32), "nhwc", 1 / 255)
    nothing = graph.op("Mul", graph.op("ReduceMean", features, axes=[1], keepdims=1), graph.const(0.0))
    names = [f"StatefulPartitionedCall:{number}" for number in range(4)]
    ports = []
    for name, shape in zip(names, ([1, 24, 4], [1, 24], [1, 24], [1])):
        graph.op("Expand", graph.op("Reshape", nothing, graph.const([1] * len(shape), np.int64)), graph.const(shape, np.int64), outputs=[name])
        ports.append((name, F32, shape))
    model = graph.model([("input", U8, [1, 64, 64, 3])], ports)
    output = {"boxes": names[0], "labels": names[1], "scores": names[2], "count": names[3], "box_format": "yxyx", "box_space": "normalized"}
    write_json("tflite-unseen", model, {"output": output})


def anchor_indices():
    """TensorFlow 2's Object Detection API also returns the numbers of the anchors: here zeros, below those of classes."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features(graph.op("Cast", "input_tensor", to=F32), "nhwc", 1 / 255), 24, (1, 1), 82)
    reshaped(graph, graph.op("Mul", scores, graph.const(0.0)), [1, 24], "detection_anchor_indices")
    named(graph, boxes, "detection_boxes")
    reshaped(graph, graph.op("Add", labels, graph.const(1.0)), [1, 24], "detection_classes")
    reshaped(graph, scores, [1, 24], "detection_scores")
    names = ["detection_anchor_indices", "detection_boxes", "detection_classes", "detection_scores"]
    shapes = [[1, 24], [1, 24, 4], [1, 24], [1, 24]]
    model = graph.model([("input_tensor", U8, [1, "h", "w", 3])], [(name, F32, shape) for name, shape in zip(names, shapes)])
    write_json("tensorflow-anchor-indices", model, {"output": {"labels": "detection_classes", "scores": "detection_scores"}})


def yolo_nas_flat(image):
    """super-gradients' flat format: [n, 7] with image, corners in input pixels, score and class."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("input"), 24, (64, 64), 43)
    zero = graph.op("Mul", scores, graph.const(0.0))
    table = graph.op("Concat", zero, boxes, scores, labels, axis=2)
    reshaped(graph, table, [24, 7], "graph2_flat_predictions")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("graph2_flat_predictions", F32, ["n", 7])])
    output = {
        "boxes": {"output": "graph2_flat_predictions", "column": 1}, "labels": {"output": "graph2_flat_predictions", "column": 6},
        "scores": {"output": "graph2_flat_predictions", "column": 5}, "batch_index": "graph2_flat_predictions", "box_format": "xyxy",
    }
    write_json("yolo-nas-flat", model, {"output": output})
    # No test image gives a box.
    kept = graph.op("Reshape", graph.op("Greater", scores, graph.const(2.0)), graph.const([24], np.int64))
    graph.op("Squeeze", graph.op("Compress", table, kept, axis=1), graph.const([0], np.int64), outputs=["nothing"])
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("nothing", F32, ["n", 7])])
    for node in model.graph.node:
        node.output[:] = [{"nothing": "graph2_flat_predictions", "graph2_flat_predictions": "all"}.get(name, name) for name in node.output]
    model.graph.output[0].name = "graph2_flat_predictions"
    write_json("yolo-nas-flat-nothing", model, {"output": output})


def deepstream(image, older):
    """DeepStream-Yolo: corners in input pixels, the best score and its class for every candidate, in one output of six
    columns (older: in three outputs). RGB/255, letterbox, suppression at 0.45."""
    side, grid = 256, d.cells((256, 256), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("input"), len(grid), 5, None, 44, grid)
    corners = as_corners(graph, center, size)
    tops = graph.op("ReduceMax", scores, axes=[2], keepdims=1)
    labels = graph.op("Cast", graph.op("ArgMax", scores, axis=2, keepdims=1), to=F32)
    count = len(grid)
    if older:
        outputs = [("boxes", corners, 4), ("scores", tops, 1), ("classes", labels, 1)]
        for name, value, _ in outputs:
            named(graph, value, name)
        ports = [(name, F32, [1, count, width]) for name, _, width in outputs]
    else:
        graph.op("Concat", corners, tops, labels, axis=2, outputs=["output"])
        ports = [("output", F32, [1, count, 6])]
    model = graph.model([("input", F32, [1, 3, side, side])], ports)
    canvas, ratio, new, pad = d.letterbox(image, side, side, 114)
    raw = d.run(model, {"input": d.planar(canvas)})
    table = np.concatenate([in_rows(raw[name]) for name, *_ in ports], axis=1)
    boxes = d.one_ratio(table[:, :4], image, ratio, new, pad)
    found = d.detections(boxes, table[:, 5].astype(int), table[:, 4], 0.005, nms=0.45)
    write("deepstream-older" if older else "deepstream", model, found)


def detectron2(image):
    """Detectron2's tracing export: one image [3, height, width], BGR 0..255, short side 800; boxes, classes, scores, and
    height and width of the input."""
    graph = d.Graph()
    features = graph.features("image", "chw", 1 / 255)
    shape = graph.op("Shape", "image")
    size = graph.op("Slice", shape, graph.const([1], np.int64), graph.const([3], np.int64))
    boxes, scores, labels = final_parts(graph, features, 24, (1, 1), 45)
    sides = graph.op("Cast", graph.op("Gather", size, graph.const([1, 0, 1, 0], np.int64)), to=F32)
    reshaped(graph, graph.op("Mul", boxes, sides), [24, 4], "value")
    reshaped(graph, graph.op("Cast", labels, to=I64), [24], "value.3")
    reshaped(graph, scores, [24], "value.7")
    named(graph, size, "size")
    model = graph.model(
        [("image", F32, [3, "height", "width"])],
        [("value", F32, ["n", 4]), ("value.3", I64, ["n"]), ("value.7", F32, ["n"]), ("size", I64, [2])],
    )
    canvas = np.asarray(Image.fromarray(image).resize((1173, 800), Image.Resampling.BILINEAR))
    raw = d.run(model, {"image": d.planar(canvas[..., ::-1], 1.0)[0]})
    boxes = d.stretched(raw["value"].astype(np.float64), image, (1173, 800))
    found = d.detections(boxes, raw["value.3"], raw["value.7"].astype(np.float64), 0.25)
    d.write("detectron2", model, found, 0.25, {"labels.txt": "\n".join(d.NAMES) + "\n"})


def gluon_cv():
    """GluonCV: class, score and box in outputs [1, n, 1], [1, n, 1] and [1, n, 4], filled up with -1."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("data"), 24, (64, 64), 46, filled=17)
    for name, value in (("ids", labels), ("probabilities", scores), ("boxes", boxes)):
        named(graph, value, name)
    model = graph.model(
        [("data", F32, [1, 3, 64, 64])], [("ids", F32, [1, 24, 1]), ("probabilities", F32, [1, 24, 1]), ("boxes", F32, [1, 24, 4])]
    )
    output = {"boxes": "boxes", "labels": "ids", "scores": "probabilities", "box_format": "xyxy", "box_space": "model-pixels"}
    write_json("gluon-cv", model, {"output": output})


def caffe_ssd(image):
    """OpenVINO's and Caffe's DetectionOutput: [1, 1, n, 7] with image, class, score and corners from 0 to 1; the last row
    is image -1 and zeros. BGR in 0..255, resized by OpenCV ignoring the aspect ratio."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("data", scale=1 / 255), 24, (1, 1), 47)
    zero = graph.op("Mul", scores, graph.const(0.0))
    table = graph.op("Concat", zero, labels, scores, boxes, axis=2)
    end = graph.const(np.array([[[-1, 0, 0, 0, 0, 0, 0]]], np.float32))
    reshaped(graph, graph.op("Concat", table, end, axis=1), [1, 1, 25, 7], "detection_out")
    model = graph.model([("data", F32, [1, 3, 64, 64])], [("detection_out", F32, [1, 1, 25, 7])])
    canvas = cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR)[..., ::-1]
    rows = d.run(model, {"data": d.planar(canvas, 1.0)})["detection_out"][0, 0, :24].astype(np.float64)
    found = d.detections(d.stretched(rows[:, 3:] * 64, image), rows[:, 1], rows[:, 2], 0.25)
    d.write("caffe-ssd", model, found, 0.25, {"labels.txt": "\n".join(d.NAMES) + "\n"})


def tensorflow_three_classes(image):
    """TensorFlow's detection API with all outputs: with three classes and the background its scores have four columns, as
    boxes have. 8-bit RGB of any size, resized inside; boxes from top to right in 0..1; class numbers begin with 1."""
    graph = d.Graph()
    features = graph.features(graph.op("Cast", "input_tensor", to=F32), "nhwc", 1 / 255)
    boxes, scores, labels = final_parts(graph, features, 24, (1, 1), 48)
    swap = lambda table: graph.op("Gather", table, graph.const([1, 0, 3, 2], np.int64), axis=2)  # noqa: E731
    named(graph, swap(boxes), "detection_boxes")
    reshaped(graph, scores, [1, 24], "detection_scores")
    reshaped(graph, graph.op("Add", labels, graph.const(1.0)), [1, 24], "detection_classes")
    graph.op("Sigmoid", graph.waves(features, 24, 4, 49), outputs=["detection_multiclass_scores"])
    raw = graph.waves(features, 525, 8, 50)
    center = graph.scaled(graph.columns(raw, 0, 2), 0.4, 0.5)
    size = graph.scaled(graph.columns(raw, 2, 4), 0.08, 0.12)
    named(graph, as_corners(graph, center, size, "y"), "raw_detection_boxes")
    graph.op("Sigmoid", graph.scaled(graph.columns(raw, 4, 8), 6.0, -5.0), outputs=["raw_detection_scores"])
    named(graph, graph.const(np.float32([24])), "num_detections")
    named(graph, graph.const(np.arange(24, dtype=np.float32)[None] * 20), "detection_anchor_indices")
    shapes = {
        "detection_anchor_indices": [1, 24], "detection_boxes": [1, 24, 4], "detection_classes": [1, 24],
        "detection_multiclass_scores": [1, 24, 4], "detection_scores": [1, 24], "num_detections": [1],
        "raw_detection_boxes": [1, 525, 4], "raw_detection_scores": [1, 525, 4],
    }
    outputs = [(name, F32, shape) for name, shape in shapes.items()]
    model = graph.model([("input_tensor", U8, [1, "height", "width", 3])], outputs)
    raw = d.run(model, {"input_tensor": image[None]})
    top, left, bottom, right = in_rows(raw["detection_boxes"]).T
    boxes = np.stack([left, top, right, bottom], axis=1) * np.array([image.shape[1], image.shape[0]] * 2)
    found = d.detections(boxes, raw["detection_classes"][0] - 1, raw["detection_scores"][0].astype(np.float64), 0.25)
    d.write("tensorflow-three-classes", model, found, 0.25, {"labels.txt": "\n".join(d.NAMES) + "\n"})


# One output with scores of all classes.


def yolov8_rows(image):
    """[1, candidates, 4 + 80] without metadata: YOLOv8 transposed. RGB/255, letterbox, suppression at 0.7."""
    side, grid = 256, d.cells((256, 256), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("images"), len(grid), COCO, None, 51, grid)
    graph.op("Concat", center, size, scores, axis=2, outputs=["output0"])
    model = graph.model([("images", F32, [1, 3, side, side])], [("output0", F32, [1, len(grid), 4 + COCO])])
    canvas, ratio, new, pad = d.letterbox(image, side, side, 114)
    table = in_rows(d.run(model, {"images": d.planar(canvas)})["output0"])
    boxes = d.one_ratio(d.corners(table[:, :4]), image, ratio, new, pad)
    write("yolov8-rows", model, ranked(boxes, table[:, 4:], 0.7), readings=2)


def yolov8_p2(image):
    """Ultralytics' YOLOv8-P2: a level of four pixels besides the usual three."""
    before = d.cells, d.write
    d.cells = lambda size, _, anchors=1: before[0](size, (4, 8, 16, 32), anchors)

    def write_best(_, model, found, *__):
        d.write = before[1]
        write("yolov8-p2", model, found)

    d.write = write_best
    d.yolo("yolov8", image, "8.4.190", d.each_axis)
    d.cells, d.write = before


def finds_nothing():
    """A YOLOv8 whose scores stay below 0.2."""
    grid = d.cells((64, 64), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("images"), len(grid), 5, None, 58, grid)
    table = graph.op("Concat", center, size, graph.op("Mul", scores, graph.const(0.2)), axis=2)
    swapped(graph, table, "output0")
    model = graph.model([("images", F32, [1, 3, 64, 64])], [("output0", F32, [1, 9, len(grid)])])
    output = {"boxes": "output0", "scores": {"output": "output0", "column": 4}, "candidates_last": True}
    write_json("finds-nothing", model, {"output": output})


def yolov6():
    """YOLOv6: an objectness that is always 1."""
    grid = d.cells((64, 64), STRIDES)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("images"), len(grid), 5, None, 52, grid)
    one = graph.op("Add", graph.op("Mul", graph.columns(scores, 0, 1), graph.const(0.0)), graph.const(1.0))
    graph.op("Concat", center, size, one, scores, axis=2, outputs=["outputs"])
    model = graph.model([("images", F32, [1, 3, 64, 64])], [("outputs", F32, [1, len(grid), 10])])
    output = {"boxes": "outputs", "scores": {"output": "outputs", "column": 5}, "objectness": {"output": "outputs", "column": 4}, "box_format": "cxcywh"}
    write_json("yolov6", model, {"output": output})


def yolov3_pytorch():
    """PyTorch-YOLOv3 and -YOLOv4: [1, n, 85] with an objectness, the coarsest level first, three anchors a cell."""
    grid = d.cells((64, 64), (32, 16, 8), 3)
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("input"), len(grid), 1 + COCO, None, 53, grid)
    graph.op("Concat", center, size, scores, axis=2, outputs=["output"])
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("output", F32, [1, len(grid), 5 + COCO])])
    output = {"boxes": "output", "scores": {"output": "output", "column": 5}, "objectness": {"output": "output", "column": 4}, "box_format": "cxcywh"}
    write_json("yolov3-pytorch", model, {"output": output})


def yolov9_dual():
    """YOLOv9's own export of a model with an auxiliary branch: the same output twice."""
    grid = d.cells((64, 64), STRIDES)
    graph = d.Graph()
    features = graph.features("images")
    for number in (0, 1):
        center, size, scores = parts(graph, features, len(grid), COCO, None, 54 + number, grid)
        table = graph.op("Concat", center, size, scores, axis=2)
        swapped(graph, table, f"output{number}")
    ports = [(f"output{number}", F32, [1, 4 + COCO, len(grid)]) for number in (0, 1)]
    model = graph.model([("images", F32, [1, 3, 64, 64])], ports)
    output = {"boxes": "output0", "scores": {"output": "output0", "column": 4}, "candidates_last": True, "box_format": "cxcywh"}
    write_json("yolov9-dual", model, {"output": output, "readings": 2})


def picodet(image):
    """PaddleDetection's PicoDet without postprocessing: scores and 4 x 8 bins for each of four levels. `infer_cfg.yml`
    states how images are prepared, and the suppression."""
    strides = (8, 16, 32, 64)
    graph = d.Graph()
    features = graph.features("image")
    ports = []
    for kind, width, wave in (("scores", COCO, lambda graph, table: graph.op("Sigmoid", graph.scaled(table, 6.0, -3.0))), ("bins", 32, lambda graph, table: graph.scaled(table, 4.0, -0.7))):
        for stride in strides:
            count = len(d.cells((64, 64), [stride]))
            named(graph, wave(graph, graph.waves(features, count, width, stride + width)), f"{kind}_{stride}")
            ports.append((f"{kind}_{stride}", F32, [1, count, width]))
    model = graph.model([("image", F32, [1, 3, 64, 64])], ports)
    levels = lambda kind: [f"{kind}_{stride}" for stride in strides]  # noqa: E731
    grid = {"strides": list(strides), "coding": {"distance-bins": {"bins": 8, "point": "center"}}}
    write_json("picodet", model, {"output": {"boxes": levels("bins"), "scores": levels("scores"), "grid": grid}})
    canvas = cv2.resize(image, (64, 64), interpolation=cv2.INTER_CUBIC)
    raw = d.run(model, {"image": d.planar(canvas, 255.0, *IMAGENET)})
    scores, bins = (np.concatenate([in_rows(raw[name]) for name in levels(kind)]) for kind in ("scores", "bins"))
    cells = d.cells((64, 64), strides)
    distances = (d.softmax(bins.reshape(-1, 4, 8)) * np.arange(8)).sum(axis=-1) * cells[:, 2:]
    points = (cells[:, :2] + 0.5) * cells[:, 2:]
    boxes = d.stretched(np.concatenate([points - distances[:, :2], points + distances[:, 2:]], axis=1), image)
    config = f"""mode: paddle
arch: PicoDet
Preprocess:
- interp: 2
  keep_ratio: false
  target_size:
  - 64
  - 64
  type: Resize
- is_scale: true
  mean: {IMAGENET[0]}
  std: {IMAGENET[1]}
  type: NormalizeImage
- type: Permute
NMS:
  keep_top_k: 100
  name: MultiClassNMS
  nms_threshold: 0.3
fpn_stride: [8, 16, 32, 64]
"""
    write("picodet-config", model, ranked(boxes, scores, 0.3, every=True), {"infer_cfg.yml": config})


def yolop(image):
    """YOLOP: boxes with an objectness and one class, next to two segmentation maps. ImageNet's mean and std, letterbox,
    suppression at 0.45."""
    side, grid = 256, d.cells((256, 256), STRIDES, 3)
    graph = d.Graph()
    features = graph.features("images")
    center, size, scores = parts(graph, features, len(grid), 2, None, 63, grid)
    graph.op("Concat", center, size, graph.op("Sqrt", scores), axis=2, outputs=["det_out"])
    ports = [("det_out", F32, [1, len(grid), 6])]
    for number, name in enumerate(("drive_area_seg", "lane_line_seg")):
        reshaped(graph, graph.waves(features, 2, 64 * 64, 64 + number), [1, 2, 64, 64], name)
        ports.append((name, F32, [1, 2, 64, 64]))
    model = graph.model([("images", F32, [1, 3, side, side])], ports)
    canvas, ratio, new, pad = d.letterbox(image, side, side, 114)
    table = in_rows(d.run(model, {"images": d.planar(canvas, 255.0, *IMAGENET)})["det_out"])
    boxes = d.exact_padding(d.corners(table[:, :4]), image, ratio, new, pad, (side, side))
    write("yolop", model, ranked(boxes, table[:, 4:5] * table[:, 5:], 0.45))


def yolov5_face(image):
    """YOLOv5-face: box, objectness, five key points in input pixels, and a score, for three anchors per cell. RGB/255,
    letterbox, suppression at 0.5."""
    side, grid = 256, d.cells((256, 256), STRIDES, 3)
    graph = d.Graph()
    features = graph.features("input")
    center, size, scores = parts(graph, features, len(grid), 2, None, 63, grid)
    points = graph.op("Add", graph.scaled(graph.waves(features, len(grid), 10, 71), 20.0, 0.0), graph.const(np.tile((grid[:, :2] + 0.5) * grid[:, 2:], 5)[None]))
    scores = graph.op("Sqrt", scores)
    objectness, score = graph.columns(scores, 0, 1), graph.columns(scores, 1, 2)
    graph.op("Concat", center, size, objectness, points, score, axis=2, outputs=["output"])
    model = graph.model([("input", F32, [1, 3, side, side])], [("output", F32, [1, len(grid), 16])])
    canvas, ratio, new, pad = d.letterbox(image, side, side, 114)
    table = in_rows(d.run(model, {"input": d.planar(canvas)})["output"])
    boxes = d.exact_padding(d.corners(table[:, :4]), image, ratio, new, pad, (side, side))
    write("yolov5-face", model, ranked(boxes, table[:, 4:5] * table[:, 15:], 0.5))


def yolo26_pose(image):
    """Ultralytics' end-to-end poses: corners in input pixels, score, class, and 17 key points with a score each."""
    graph = d.Graph()
    features = graph.features("images")
    boxes, scores, labels = final_parts(graph, features, 24, (64, 64), 72)
    points = graph.scaled(graph.waves(features, 24, 51, 73), 20.0, 32.0)
    graph.op("Concat", boxes, scores, graph.op("Mul", labels, graph.const(0.0)), points, axis=2, outputs=["output0"])
    metadata = d.ultralytics("pose", "8.4.30", kpt_shape="[17, 3]", end2end="True") | {"names": "{0: 'rust'}"}
    model = graph.model([("images", F32, [1, 3, 64, 64])], [("output0", F32, [1, 24, 57])], metadata)
    canvas, ratio, new, pad = d.letterbox(image, 64, 64, 114)
    table = in_rows(d.run(model, {"images": d.planar(canvas)})["output0"])
    boxes = d.one_ratio(table[:, :4], image, ratio, new, pad)
    d.write("yolo26-pose", model, d.detections(boxes, table[:, 5].astype(int), table[:, 4], 0.25), 0.25)


def yolo_nas_pose(image):
    """super-gradients' YOLO-NAS-POSE: a count, corners in input pixels, scores and key points of a single class. RGB in
    8 bits, resized by OpenCV whatever the aspect ratio, as the documentation of the export does it."""
    graph = d.Graph()
    features = graph.features(graph.op("Cast", "input", to=F32), scale=1 / 255)
    boxes, scores, _ = final_parts(graph, features, 24, (64, 64), 74)
    names = [f"graph2_{name}" for name in ("num_predictions", "pred_boxes", "pred_scores", "pred_joints")]
    named(graph, graph.const([[17]], np.int64), names[0])
    # Rows after the count are zeros.
    is_box = graph.const((np.arange(24) < 17)[None, :, None].astype(np.float32))
    graph.op("Mul", boxes, is_box, outputs=[names[1]])
    reshaped(graph, graph.op("Mul", scores, is_box), [1, 24], names[2])
    reshaped(graph, graph.scaled(graph.waves(features, 24, 51, 75), 20.0, 32.0), [1, 24, 17, 3], names[3])
    shapes = [[1, 1], [1, 24, 4], [1, 24], [1, 24, 17, 3]]
    outputs = [(name, F32 if number else I64, shape) for number, (name, shape) in enumerate(zip(names, shapes))]
    model = graph.model([("input", U8, [1, 3, 64, 64])], outputs)
    canvas = cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR)
    raw = d.run(model, {"input": d.planar(canvas, 1.0).astype(np.uint8)})
    boxes = d.stretched(in_rows(raw[names[1]])[:17], image)
    found = d.detections(boxes, np.zeros(17, int), raw[names[2]][0][:17].astype(np.float64), 0.25)
    d.write("yolo-nas-pose", model, found, 0.25)


def mmrotate(image):
    """MMDeploy's export of MMRotate: [1, n, 6] of center, size, angle and score, and classes. The upright boxes around
    the rotated ones count. Preprocessing as of RTMDet, in `pipeline.json`."""
    graph = d.Graph()
    features = graph.features("input", scale=0.5)
    center, size, _ = parts(graph, features, 24, 1, (64, 64), 76)
    scores = graph.op("Sigmoid", graph.scaled(graph.waves(features, 24, 1, 75), 4.0, 0.0))
    angle = graph.scaled(graph.waves(features, 24, 1, 77), 0.7, 0.7)
    graph.op("Concat", center, size, angle, scores, axis=2, outputs=["dets"])
    labels = graph.op("Cast", graph.const(np.arange(24)[None] % 3), to=I64)
    named(graph, labels, "labels")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("dets", F32, [1, 24, 6]), ("labels", I64, [1, 24])])
    canvas = cv2.resize(image, (64, 64), interpolation=cv2.INTER_LINEAR)[..., ::-1]
    mean, std = [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]
    raw = d.run(model, {"input": d.planar(canvas, 1.0, mean, std)})
    dets = in_rows(raw["dets"])
    across, down = np.abs(np.cos(dets[:, 4])), np.abs(np.sin(dets[:, 4]))
    width, height = dets[:, 2], dets[:, 3]
    upright = np.stack([dets[:, 0], dets[:, 1], width * across + height * down, width * down + height * across], axis=1)
    found = d.detections(d.stretched(d.corners(upright), image), raw["labels"][0], dets[:, 5], 0.005)
    d.write("mmrotate", model, found, 0.005, {"pipeline.json": pipeline_json(mean, std), "labels.txt": "\n".join(d.NAMES) + "\n"})


def detr_names(image, case, columns):
    """DETR's own code (92 numbers: COCO's 91 ids and “no object” after the softmax) and its successors' as of NVIDIA TAO
    (91: the best of all queries and classes after the sigmoid) call their outputs `pred_logits` and `pred_boxes`.
    ImageNet's mean and std, resized by Pillow."""
    has_no_object = columns == 92
    graph = d.Graph()
    logits, boxes = logits_and_boxes(graph, graph.features("inputs"), 30, columns, np.array(-2.5), 78)
    named(graph, logits, "pred_logits")
    named(graph, boxes, "pred_boxes")
    model = graph.model([("inputs", F32, [1, 3, 64, 64])], [("pred_logits", F32, [1, 30, columns]), ("pred_boxes", F32, [1, 30, 4])])
    canvas = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR))
    raw = d.run(model, {"inputs": d.planar(canvas, 255.0, *IMAGENET)})
    boxes, logits = d.stretched(d.corners(in_rows(raw["pred_boxes"])) * 64, image), in_rows(raw["pred_logits"])
    if has_no_object:
        write(case, model, ranked(boxes, d.softmax(logits)[:, :-1]))
    else:
        write(case, model, ranked(boxes, d.sigmoid(logits), limit=30, every=True))


def tflite_ssd(image):
    """TensorFlow Lite's `TFLite_Detection_PostProcess` through tf2onnx: top, left, bottom, right from 0 to 1, classes
    without the background, scores and a count. `labelmap.txt` begins with the background. Pixels in -1..1."""
    graph = d.Graph()
    features = graph.features("normalized_input_image_tensor", "nhwc")
    boxes, scores, labels = final_parts(graph, features, 24, (1, 1), 79)
    names = ["TFLite_Detection_PostProcess" + end for end in ("", ":1", ":2", ":3")]
    graph.op("Gather", boxes, graph.const([1, 0, 3, 2], np.int64), axis=2, outputs=[names[0]])
    reshaped(graph, labels, [1, 24], names[1])
    reshaped(graph, scores, [1, 24], names[2])
    named(graph, graph.const([24.0]), names[3])
    outputs = [(name, F32, shape) for name, shape in zip(names, ([1, 24, 4], [1, 24], [1, 24], [1]))]
    model = graph.model([("normalized_input_image_tensor", F32, [1, 64, 64, 3])], outputs)
    canvas = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR))
    raw = d.run(model, {"normalized_input_image_tensor": np.float32(canvas)[None] / np.float32(127.5) - 1})
    boxes = d.stretched(in_rows(raw[names[0]])[:, [1, 0, 3, 2]] * 64, image)
    found = d.detections(boxes, raw[names[1]][0].astype(int), raw[names[2]][0].astype(np.float64), 0.25)
    d.write("tflite-ssd", model, found, 0.25, {"labelmap.txt": "\n".join(["???", *d.NAMES]) + "\n"})


def keras_retinanet(image):
    """keras-retinanet: `filtered_detections` as corners in input pixels, scores and classes. BGR minus the mean, resized
    by OpenCV to a short side of 800 and a long side of at most 1333, with one ratio for both axes (here in 8 bits and to
    a whole number of pixels, which differs by rounding alone)."""
    graph = d.Graph()
    shape = graph.op("Cast", graph.op("Shape", "input_1"), to=F32)
    sides = graph.op("Gather", shape, graph.const([2, 1, 2, 1], np.int64))
    boxes, scores, labels = final_parts(graph, graph.features("input_1", "nhwc", 1 / 255), 24, (1, 1), 80)
    names = ["filtered_detections" + end for end in ("", "_1", "_2")]
    graph.op("Mul", boxes, sides, outputs=[names[0]])
    reshaped(graph, scores, [1, 24], names[1])
    reshaped(graph, graph.op("Cast", labels, to=I32), [1, 24], names[2])
    outputs = [(names[0], F32, [1, 24, 4]), (names[1], F32, [1, 24]), (names[2], I32, [1, 24])]
    model = graph.model([("input_1", F32, ["n", "height", "width", 3])], outputs)
    ratio = min(800 / min(image.shape[:2]), 1333 / max(image.shape[:2]))
    canvas = cv2.resize(image[..., ::-1], [round(side * ratio) for side in image.shape[1::-1]])
    raw = d.run(model, {"input_1": (canvas.astype(np.float32) - np.float32([103.939, 116.779, 123.68]))[None]})
    boxes = in_rows(raw[names[0]]) / ratio
    found = d.detections(boxes, raw[names[2]][0], raw[names[1]][0].astype(np.float64), 0.25)
    d.write("keras-retinanet", model, found, 0.25)


def pytorch_ssd(image):
    """pytorch-ssd (jetson-inference): as UltraFace with several classes. `labels.txt` begins with the background, and
    suppression is at 0.45."""
    graph = d.Graph()
    center, size, scores = parts(graph, graph.features("input_0", scale=0.5), 1105, 3, (1, 1), 81)
    scores = graph.op("Mul", scores, graph.const(0.33))
    rest = graph.op("Sub", graph.const(1.0), graph.op("ReduceSum", scores, graph.const([2], np.int64), keepdims=1))
    graph.op("Concat", rest, scores, axis=2, outputs=["scores"])
    named(graph, as_corners(graph, center, size), "boxes")
    model = graph.model([("input_0", F32, [1, 3, 48, 64])], [("scores", F32, [1, 1105, 4]), ("boxes", F32, [1, 1105, 4])])
    canvas = cv2.resize(image, (64, 48), interpolation=cv2.INTER_LINEAR)
    raw = d.run(model, {"input_0": d.planar(canvas, 1.0, (127,) * 3, (128,) * 3)})
    boxes = d.stretched(in_rows(raw["boxes"]) * np.array([64, 48] * 2), image, (64, 48))
    found = ranked(boxes, in_rows(raw["scores"])[:, 1:], 0.45, every=True)
    write("pytorch-ssd", model, found, {"labels.txt": "\n".join(["BACKGROUND", *d.NAMES])})


def yolox_coco():
    """YOLOX with COCO's 80 classes, not decoded, and no label file."""
    grid = d.cells((64, 64), STRIDES)
    graph = d.Graph()
    waves = graph.waves(graph.features("images", scale=1 / 255), len(grid), 5 + COCO, 66)
    scores = graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 5 + COCO), 14.0, -12.5))
    graph.op("Concat", graph.columns(waves, 0, 4), scores, axis=2, outputs=["output"])
    model = graph.model([("images", F32, [1, 3, 64, 64])], [("output", F32, [1, len(grid), 5 + COCO])])
    output = {"objectness": {"output": "output", "column": 4}, "grid": {"strides": list(STRIDES), "coding": {"offsets": {}}}}
    write_json("yolox-coco", model, {"output": output})


def yolov8_tflite():
    """Ultralytics' TFLite export through tf2onnx: channels last, center and size from 0 to 1, no metadata."""
    grid = d.cells((64, 64), STRIDES)
    graph = d.Graph()
    features = graph.features("serving_default_images:0", "nhwc")
    center, size, scores = parts(graph, features, len(grid), 20, None, 67, grid)
    share = graph.const(1 / 64)
    table = graph.op("Concat", graph.op("Mul", center, share), graph.op("Mul", size, graph.const(0.25 / 64)), scores, axis=2)
    swapped(graph, table, "PartitionedCall:0")
    model = graph.model(
        [("serving_default_images:0", F32, [1, 64, 64, 3])], [("PartitionedCall:0", F32, [1, 24, len(grid)])]
    )
    output = {
        "boxes": "PartitionedCall:0", "scores": {"output": "PartitionedCall:0", "column": 4}, "objectness": None,
        "candidates_last": True, "box_format": "cxcywh", "box_space": "normalized",
    }
    write_json("yolov8-tflite", model, {"output": output})


def one_class():
    """A detector of one class after suppression: corners in input pixels and scores, and nothing else."""
    graph = d.Graph()
    boxes, scores, _ = final_parts(graph, graph.features("input"), 24, (64, 64), 68)
    named(graph, boxes, "boxes")
    reshaped(graph, scores, [1, 24], "scores")
    model = graph.model([("input", F32, [1, 3, 64, 64])], [("boxes", F32, [1, 24, 4]), ("scores", F32, [1, 24])])
    write_json("one-class", model, {"output": {"boxes": "boxes", "scores": "scores", "labels": None, "box_format": "xyxy"}})


# Graphs that must be rejected.


def yunet():
    """YuNet: class score, objectness, offsets of a box and key points for each of three levels."""
    graph = d.Graph()
    features = graph.features("input")
    ports = []
    for kind, width in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)):
        for stride in STRIDES:
            count = (64 // stride) ** 2
            waves = graph.waves(features, count, width, stride + width)
            table = graph.op("Sigmoid", graph.scaled(waves, 4.0, -1.0)) if width == 1 else graph.scaled(waves, 0.5, 0.6)
            named(graph, table, f"{kind}_{stride}")
            ports.append((f"{kind}_{stride}", F32, [1, count, width]))
    model = graph.model([("input", F32, [1, 3, 64, 64])], ports)
    levels = lambda kind: [f"{kind}_{stride}" for stride in STRIDES]  # noqa: E731
    output = {
        "boxes": levels("bbox"), "scores": levels("cls"), "objectness": levels("obj"), "activation": "square-root",
        "grid": {"strides": list(STRIDES), "coding": {"offsets": {}}}, "box_format": "cxcywh", "box_space": "model-pixels",
        "nms_iou": 0.3,
    }
    # As 32-bit floats are written.
    output["nms_iou"] = float(np.float32(0.3))
    write_json("yunet", model, {"output": output})


def scrfd(image):
    """InsightFace's SCRFD: scores, distances in strides from the corner of a cell and key points for each of three
    levels, in two dimensions, two anchors per cell after one another. RGB, (pixel - 127.5) / 128, resized by OpenCV to
    the top left of black, suppression at 0.4."""
    graph = d.Graph()
    features = graph.features("input.1", scale=0.5)
    side, ports = 352, []  # of which no side of the image is a fraction of a pixel
    for number, (width, stride) in enumerate([(width, stride) for width in (1, 4, 10) for stride in STRIDES]):
        count = 2 * (side // stride) ** 2
        waves = graph.waves(features, count, width, 3 * number)
        table = graph.op("Sigmoid", graph.scaled(waves, 14.0, -11.5)) if width == 1 else graph.scaled(waves, 1.5, 2.0)
        reshaped(graph, table, [count, width], str(440 + number))
        ports.append((str(440 + number), F32, [count, width]))
    model = graph.model([("input.1", F32, [1, 3, side, side])], ports)
    canvas, ratio, new, pad = d.letterbox(image, side, side, 0, centered=False, rounding=int)
    raw = d.run(model, {"input.1": d.planar(canvas, 1.0, (127.5,) * 3, (128,) * 3)})
    boxes, scores = [], []
    for level, stride in enumerate(STRIDES):
        points = np.stack(np.mgrid[: side // stride, : side // stride][::-1], axis=-1).reshape(-1, 2) * stride
        points = np.stack([points] * 2, axis=1).reshape(-1, 2)
        distances = raw[str(443 + level)].astype(np.float64) * stride
        boxes.append(np.concatenate([points - distances[:, :2], points + distances[:, 2:]], axis=1))
        scores.append(raw[str(440 + level)].astype(np.float64))
    boxes = d.one_ratio(np.concatenate(boxes), image, ratio, new, pad)
    write("scrfd", model, ranked(boxes, np.concatenate(scores), 0.4))


def retinaface(image):
    """biubug6/Pytorch_Retinaface: offsets from two square priors per cell, which follow one another, with the variances
    0.1 and 0.2, then softmax of background and face, and key points. BGR minus (104, 117, 123) of the image as it is,
    suppression at 0.4."""
    graph = d.Graph()
    features = graph.features("input", scale=1 / 255)
    sides = graph.op("Slice", graph.op("Shape", "input"), graph.const([2], np.int64), graph.const([4], np.int64))
    counts = []
    for stride in STRIDES:
        cells = graph.op("Add", sides, graph.const([stride - 1] * 2, np.int64))
        cells = graph.op("Cast", graph.op("Div", cells, graph.const([stride] * 2, np.int64)), to=F32)
        counts.append(graph.op("Mul", graph.op("ReduceProd", cells, keepdims=1), graph.const([2.0])))
    count = graph.op("Cast", graph.op("Sum", *counts), to=I64)
    # As many rows as the largest image of the tests needs.
    waves = graph.waves(features, 4000, 15, 91)
    rows = graph.op("Slice", waves, graph.const([0], np.int64), count, graph.const([1], np.int64))
    graph.op("Mul", graph.columns(rows, 0, 4), graph.const(2.0), outputs=["output"])
    score = graph.op("Sigmoid", graph.scaled(graph.columns(rows, 4, 5), 14.0, -12.5))
    graph.op("Concat", graph.op("Sub", graph.const(1.0), score), score, axis=2, outputs=["outputt"])
    named(graph, graph.columns(rows, 5, 15), "outputtt")
    ports = [(name, F32, [1, "n", width]) for name, width in (("output", 4), ("outputt", 2), ("outputtt", 10))]
    model = graph.model([("input", F32, [1, 3, "height", "width"])], ports)
    raw = d.run(model, {"input": d.planar(image[..., ::-1], 1.0, (104, 117, 123))})
    priors = []
    for stride, sizes in zip(STRIDES, ((16, 32), (64, 128), (256, 512))):
        for y, x in np.ndindex(-(-image.shape[0] // stride), -(-image.shape[1] // stride)):
            priors += [((x + 0.5) * stride, (y + 0.5) * stride, size, size) for size in sizes]
    priors, offsets = np.array(priors), in_rows(raw["output"])
    centers = priors[:, :2] + offsets[:, :2] * 0.1 * priors[:, 2:]
    boxes = d.corners(np.concatenate([centers, priors[:, 2:] * np.exp(offsets[:, 2:] * 0.2)], axis=1))
    write("retinaface", model, ranked(boxes, in_rows(raw["outputt"])[:, 1:], 0.4))


def effdet(image):
    """efficientdet-pytorch's DetBenchPredict: 100 rows of corners in input pixels, score and class, from 1. RGB with
    ImageNet's mean and std, resized by Pillow to the top left of that mean."""
    graph = d.Graph()
    boxes, scores, labels = final_parts(graph, graph.features("input"), 100, (128, 128), 92)
    graph.op("Concat", boxes, scores, graph.op("Add", labels, graph.const(1.0)), axis=2, outputs=["output"])
    model = graph.model([("input", F32, [1, 3, 128, 128])], [("output", F32, [1, 100, 6])])
    ratio = min(128 / side for side in image.shape[:2])
    size = tuple(int(side * ratio) for side in image.shape[1::-1])
    canvas = Image.new("RGB", (128, 128), tuple(int(round(255 * mean)) for mean in IMAGENET[0]))
    canvas.paste(Image.fromarray(image).resize(size, Image.BILINEAR))
    table = in_rows(d.run(model, {"input": d.planar(np.asarray(canvas), 255.0, *IMAGENET)})["output"])
    found = d.detections(table[:, :4] / ratio, table[:, 5].astype(int) - 1, table[:, 4], 0.005)
    write("effdet", model, found, {"labels.txt": "\n".join(d.NAMES) + "\n"})


def refused_centernet():
    """CenterNet before decoding: heat map, size and offset."""
    graph = d.Graph()
    features = graph.features("input")
    ports = [("hm", 5), ("wh", 2), ("reg", 2)]
    for number, (name, channels) in enumerate(ports):
        reshaped(graph, graph.waves(features, channels, 256, number), [1, channels, 16, 16], name)
    model = graph.model([("input", F32, [1, 3, 64, 64])], [(name, F32, [1, count, 16, 16]) for name, count in ports])
    write_json("refused-centernet", model, {"refused": "CenterNet or CenterFace before decoding"})


def refused_yolov2():
    """Custom Vision's and Tiny YOLOv2's grid: 5 x (5 + classes) numbers per cell."""
    graph = d.Graph()
    reshaped(graph, graph.waves(graph.features("data"), 40, 169, 3), [1, 40, 13, 13], "model_outputs0")
    model = graph.model([("data", F32, [1, 3, 416, 416])], [("model_outputs0", F32, [1, 40, 13, 13])])
    write_json("refused-yolov2", model, {"refused": "YOLOv2 before decoding (Custom Vision"})


def refused_retinanet():
    """torchvision's RetinaNet head: logits and offsets from anchors."""
    graph = d.Graph()
    features = graph.features("images")
    count = len(d.cells((64, 64), STRIDES, 9))
    named(graph, graph.waves(features, count, 20, 4), "cls_logits")
    named(graph, graph.scaled(graph.waves(features, count, 4, 5), 0.5, 0.0), "bbox_regression")
    ports = [("cls_logits", F32, [1, count, 20]), ("bbox_regression", F32, [1, count, 4])]
    write_json("refused-retinanet", graph.model([("images", F32, [1, 3, 64, 64])], ports), {"refused": "RetinaNet or SSD before decoding"})


def refused_efficientdet():
    """EfficientDet in PyTorch: offsets, scores, and the anchors that the offsets are from."""
    graph = d.Graph()
    features = graph.features("input")
    waves = graph.waves(features, 1200, 4 + 90, 61)
    named(graph, graph.columns(waves, 0, 4), "regression")
    graph.op("Sigmoid", graph.scaled(graph.columns(waves, 4, 94), 6.0, -4.0), outputs=["classification"])
    places = np.linspace(0, 60, 1200)
    named(graph, graph.const(np.stack([places, places, places + 8, places + 9], axis=1)[None]), "anchors")
    model = graph.model(
        [("input", F32, [1, 3, 64, 64])],
        [("regression", F32, [1, 1200, 4]), ("classification", F32, [1, 1200, 90]), ("anchors", F32, [1, 1200, 4])],
    )
    write_json("refused-efficientdet", model, {"refused": ""})


def refused_keras_cv():
    """KerasCV's YOLOv8: bins [1, n, 64] and scores [1, n, classes]."""
    graph = d.Graph()
    waves = graph.waves(graph.features("images", "nhwc", 1 / 255), 84, 84, 62)
    named(graph, graph.scaled(graph.columns(waves, 0, 64), 4.0, -0.7), "boxes")
    graph.op("Sigmoid", graph.scaled(graph.columns(waves, 64, 84), 6.0, -4.0), outputs=["classes"])
    model = graph.model([("images", F32, [1, 64, 64, 3])], [("boxes", F32, [1, 84, 64]), ("classes", F32, [1, 84, 20])])
    write_json("refused-keras-cv", model, {"refused": ""})


def refused_yolact():
    """YOLACT: offsets from priors, class scores after the softmax, mask coefficients, priors and prototypes."""
    graph = d.Graph()
    features = graph.features("input")
    waves = graph.waves(features, 1200, 4 + 32, 69)
    named(graph, graph.columns(waves, 0, 4), "loc")
    graph.op("Softmax", graph.scaled(graph.waves(features, 1200, 81, 70), 4.0, 0.0), axis=2, outputs=["conf"])
    graph.op("Tanh", graph.columns(waves, 4, 36), outputs=["mask"])
    places = np.linspace(0.05, 0.95, 1200)
    named(graph, graph.const(np.stack([places, places, places * 0 + 0.1, places * 0 + 0.2], axis=1)), "priors")
    reshaped(graph, graph.waves(features, 32, 64, 71), [1, 8, 8, 32], "proto")
    ports = [("loc", [1, 1200, 4]), ("conf", [1, 1200, 81]), ("mask", [1, 1200, 32]), ("priors", [1200, 4]), ("proto", [1, 8, 8, 32])]
    model = graph.model([("input", F32, [1, 3, 64, 64])], [(name, F32, shape) for name, shape in ports])
    write_json("refused-yolact", model, {"refused": "does not support these outputs"})


def refused_blaze_face():
    """BlazeFace: offsets and key points relative to anchors, and logits."""
    graph = d.Graph()
    waves = graph.waves(graph.features("input"), 896, 17, 72)
    named(graph, graph.scaled(graph.columns(waves, 0, 16), 40.0, 0.0), "regressors")
    named(graph, graph.scaled(graph.columns(waves, 16, 17), 20.0, -10.0), "classificators")
    model = graph.model([("input", F32, [1, 3, 128, 128])], [("regressors", F32, [1, 896, 16]), ("classificators", F32, [1, 896, 1])])
    write_json("refused-blaze-face", model, {"refused": "BlazeFace and other MediaPipe detectors"})


CASES = {
    "yolo-nas": lambda image: yolo_nas(image),
    "damo-yolo": damo_yolo,
    "yolov4": yolov4,
    "yolov3-zoo": lambda image: yolov3_zoo(image, "yolov3-zoo", [-1, 3]),
    "tiny-yolov3-zoo": lambda image: yolov3_zoo(image, "tiny-yolov3-zoo", [1, -1, 3]),
    "tensorflow-raw-coco": tensorflow_raw_coco,
    "nanodet-coco": lambda image: nanodet_coco(image, plus=False),
    "nanodet-plus-coco": lambda image: nanodet_coco(image, plus=True),
    "ultraface": ultraface,
    "ppyoloe-raw": lambda _: ppyoloe_raw(),
    "detr-bare": detr_bare,
    "detr-fixed-mask": detr_fixed_mask,
    "rf-detr": rf_detr,
    "rt-detr-all-outputs": lambda _: rt_detr_all_outputs(),
    "custom-vision": custom_vision,
    "efficient-nms": lambda image: counted(image, "efficient-nms", ("num_dets", "det_boxes", "det_scores", "det_classes")),
    "mmyolo": lambda image: counted(image, "mmyolo", ("num_dets", "boxes", "scores", "labels")),
    "yolo-nas-batch": lambda image: counted(
        image, "yolo-nas-batch", ("num_predictions", "pred_boxes", "pred_scores", "pred_classes"), U8, 17, I64
    ),
    "yolo-nas-flat": yolo_nas_flat,
    "yolo-world": lambda image: yolo_world(image, "yolo-world", seen_in_probes=True),
    "yolo-world-nothing": lambda image: yolo_world(image, "yolo-world-nothing", seen_in_probes=False),
    "mmdeploy-pipeline": mmdeploy_pipeline,
    "paddle-config": paddle_config,
    "deepstream": lambda image: deepstream(image, older=False),
    "deepstream-older": lambda image: deepstream(image, older=True),
    "detectron2": detectron2,
    "gluon-cv": lambda _: gluon_cv(),
    "caffe-ssd": caffe_ssd,
    "tensorflow-three-classes": tensorflow_three_classes,
    "yolov8-rows": yolov8_rows,
    "yolov8-p2": yolov8_p2,
    "finds-nothing": lambda _: finds_nothing(),
    "yolov6": lambda _: yolov6(),
    "yolov3-pytorch": lambda _: yolov3_pytorch(),
    "yolov9-dual": lambda _: yolov9_dual(),
    "picodet": picodet,
    "yolop": yolop,
    "yolov5-face": yolov5_face,
    "mmdeploy-dynamic": mmdeploy_dynamic,
    "paddle-unseen": paddle_unseen,
    "otx": otx,
    "roboflow": roboflow,
    "coco-by-number": coco_by_number,
    "tflite-unseen": lambda _: tensorflow_lite_unseen(),
    "tensorflow-anchor-indices": lambda _: anchor_indices(),
    "yolo26-pose": yolo26_pose,
    "yolo-nas-pose": yolo_nas_pose,
    "mmrotate": mmrotate,
    "detr-torch-hub": lambda image: detr_names(image, "detr-torch-hub", 92),
    "tao-dino": lambda image: detr_names(image, "tao-dino", 91),
    "tflite-ssd": tflite_ssd,
    "keras-retinanet": keras_retinanet,
    "pytorch-ssd": pytorch_ssd,
    "yolox-coco": lambda _: yolox_coco(),
    "yolov8-tflite": lambda _: yolov8_tflite(),
    "one-class": lambda _: one_class(),
    "yunet": lambda _: yunet(),
    "scrfd": scrfd,
    "retinaface": retinaface,
    "effdet": effdet,
    "refused-centernet": lambda _: refused_centernet(),
    "refused-yolov2": lambda _: refused_yolov2(),
    "refused-retinanet": lambda _: refused_retinanet(),
    "refused-efficientdet": lambda _: refused_efficientdet(),
    "refused-keras-cv": lambda _: refused_keras_cv(),
    "refused-yolact": lambda _: refused_yolact(),
    "refused-blaze-face": lambda _: refused_blaze_face(),
}

if __name__ == "__main__":
    picture = np.asarray(Image.open(HERE / "scene.png"))
    for case in sys.argv[1:] or CASES:
        CASES[case](picture)
