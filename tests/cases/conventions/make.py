"""Small graphs with the interface of well-known models, and the expected recognition of each.

usage: python make.py        (pip install onnx==1.23.2 onnxruntime==1.32.0 pillow numpy)
Writes CASE/model.onnx, CASE/renamed.onnx (the same with every input and output renamed) and CASE/expected.json: the
parts of the card, which of its fields are recognized and which only assumed, or a part of the rejection. The two
detectors are not trained: they find the red and the blue patch in picture.png, so that a wrong channel order, mean,
size, padding or box convention changes boxes, classes and scores. Their "detections" come from Pillow and NumPy
below, not from the graphs.
"""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

HERE = pathlib.Path(__file__).parent
F32, F16, U8, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT64
OPSET = 17
random = np.random.default_rng(7)


class Graph:
    """Collects nodes; each method returns the name of the node's output."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def const(self, values, dtype=np.float32):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def op(self, kind, *inputs, outputs=None, **attributes):
        outputs = outputs or [f"value{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def model(self, inputs, outputs, metadata=None, opset=OPSET, extra_opsets=()):
        ports = [[helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "graph", *ports, self.constants)
        opsets = [helper.make_opsetid("", opset), *extra_opsets]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="spotcheck-tests")
        helper.set_model_props(model, metadata or {})
        return model


def renamed(model):
    """Every input and output under a meaningless name."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    ports = [*model.graph.input, *model.graph.output]
    names = {port.name: f"tensor_{number}" for number, port in enumerate(ports)}
    for node in model.graph.node:
        for names_of_node in (node.input, node.output):
            for position, name in enumerate(names_of_node):
                names_of_node[position] = names.get(name, name)
    for port in ports:
        port.name = names[port.name]
    return model


def write(case, model, **expected):
    folder = HERE / case
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "renamed.onnx").write_bytes(renamed(model).SerializeToString())
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


# Classifiers: the mean of each channel, times random weights.


def classifier(graph, image, classes, layout, spread=30.0):
    axes = [2, 3] if layout == "nchw" else [1, 2]
    means = graph.op("ReduceMean", image, axes=axes, keepdims=0)
    weights = random.normal(size=(3, classes)) * spread
    return graph.op("MatMul", means, graph.const(weights / weights.std()))


def crop(side, width=224):
    return {
        "short-side-crop": {
            "short_side": side, "long_side": "down", "crop_width": width, "crop_height": width, "crop_offset": "half-even"
        }
    }


IMAGENET_PIXELS = {"channels": "rgb", "divide_by": 255.0, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
TENSORFLOW_PIXELS = {"channels": "rgb", "divide_by": 1.0, "mean": [123.68, 116.78, 103.94], "std": [1, 1, 1]}
RAW_PIXELS = {"channels": "rgb", "divide_by": 1.0, "mean": [0, 0, 0], "std": [1, 1, 1]}
PIXEL_FIELDS = ["input.channels", "input.divide_by", "input.mean", "input.std", "input.resize", "input.interpolation"]


def mlperf_resnet():
    graph = Graph()
    logits = classifier(graph, "input_tensor:0", 1001, "nchw")
    graph.op("Softmax", logits, axis=1, outputs=["softmax_tensor:0"])
    graph.op("ArgMax", "softmax_tensor:0", axis=1, keepdims=0, outputs=["ArgMax:0"])
    write(
        "mlperf-resnet50-v1",
        graph.model(
            [("input_tensor:0", F32, ["unk__616", 3, 224, 224])],
            [("ArgMax:0", I64, ["unk__617"]), ("softmax_tensor:0", F32, ["unk__618", 1001])],
        ),
        card={
            "task": "classification",
            "labels": "imagenet",
            "input": {"layout": "nchw", "type": "float32", "batches": True, "resize": crop(256), **TENSORFLOW_PIXELS},
            "output": {"classification": {"values": "probabilities", "background": "first"}},
        },
        recognized=["task", "input.layout", "input.type", "input.batches", "output.classification.values", "output.classification.background"],
        assumed=["labels", *PIXEL_FIELDS],
        ignored=1,
    )


def arg_max_only():
    graph = Graph()
    logits = classifier(graph, "image", 12, "nchw")
    graph.op("ArgMax", logits, axis=1, keepdims=0, outputs=["class"])
    write(
        "arg-max-only",
        graph.model([("image", F32, ["n", 3, 224, 224])], [("class", I64, ["n"])]),
        card={
            "input": {"layout": "nchw", "batches": True, "resize": crop(256), **IMAGENET_PIXELS},
            "output": {"classification": {"values": "arg-max"}},
        },
        recognized=["task", "input.layout", "output.classification.values"],
        assumed=["labels", "output.classification.background", *PIXEL_FIELDS],
        ignored=0,
    )


def caffe2_resnet():
    graph = Graph()
    graph.op("Softmax", classifier(graph, "gpu_0/data_0", 1000, "nchw"), axis=1, outputs=["gpu_0/softmax_1"])
    write(
        "caffe2-resnet50",
        graph.model([("gpu_0/data_0", F32, [1, 3, 224, 224])], [("gpu_0/softmax_1", F32, [1, 1000])]),
        card={
            "labels": "imagenet",
            "input": {"layout": "nchw", "resize": crop(256), **IMAGENET_PIXELS},
            "output": {"classification": {"values": "probabilities"}},
        },
        recognized=["task", "input.layout", "output.classification.values"],
        assumed=["labels", *PIXEL_FIELDS],
        ignored=0,
    )


def tensorflow_resnet():
    graph = Graph()
    graph.op("Identity", classifier(graph, "input", 1001, "nhwc"), outputs=["logits"])
    write(
        "tensorflow-resnet50",
        graph.model([("input", F32, ["batch", 224, 224, 3])], [("logits", F32, ["batch", 1001])]),
        card={
            "labels": "imagenet",
            "input": {"layout": "nhwc", "batches": True, "resize": crop(256), **TENSORFLOW_PIXELS},
            "output": {"classification": {"values": "logits", "background": "first"}},
        },
        recognized=["task", "input.layout", "output.classification.background"],
        assumed=["labels", "output.classification.values", *PIXEL_FIELDS],
        ignored=0,
    )


def quantized_mobilenet():
    graph = Graph()
    pixels = graph.op("Cast", "input", to=F32)
    logits = classifier(graph, graph.op("Div", pixels, graph.const(8.0)), 1001, "nhwc")
    scale, zero = graph.const(1 / 256), graph.const(0, np.uint8)
    graph.op("QuantizeLinear", graph.op("Softmax", logits, axis=1), scale, zero, outputs=["scores"])
    write(
        "quantized-mobilenet",
        graph.model([("input", U8, [1, 224, 224, 3])], [("scores", U8, [1, 1001])]),
        card={
            "labels": "imagenet",
            "input": {"layout": "nhwc", "type": "uint8", "resize": crop(256), **RAW_PIXELS},
            "output": {"classification": {"values": "probabilities", "background": "first"}},
        },
        recognized=["task", "input.layout", "input.type", "input.divide_by", "output.classification.values", "output.classification.background"],
        assumed=["labels", "input.channels", "input.resize", "input.interpolation"],
        ignored=0,
    )


def keras_cifar():
    graph = Graph()
    scaled = graph.op("Div", "input_1", graph.const(64.0))
    graph.op("Softmax", classifier(graph, scaled, 10, "nhwc"), axis=1, outputs=["Identity"])
    write(
        "keras-cifar10",
        graph.model([("input_1", F32, ["n", 32, 32, 3])], [("Identity", F32, ["n", 10])]),
        card={
            "labels": None,
            "input": {"layout": "nhwc", "batches": True, "resize": {"stretch": {"width": 32, "height": 32}}, **RAW_PIXELS},
            "output": {"classification": {"values": "probabilities"}},
        },
        recognized=["task", "input.layout", "output.classification.values"],
        assumed=["labels", *PIXEL_FIELDS],
        ignored=0,
    )


def all_dimensions_free():
    """Only a run reveals the position of the channels; the graph does not accept two images per call."""
    graph = Graph()
    features = graph.op("Conv", "x", graph.const(random.normal(size=(5, 3, 3, 3))), pads=[1, 1, 1, 1])
    means = graph.op("ReduceMean", features, axes=[2, 3], keepdims=0)
    graph.op("Reshape", means, graph.const([1, 5], np.int64), outputs=["y"])
    write(
        "all-dimensions-free",
        graph.model([("x", F32, ["a", "b", "c", "d"])], [("y", F32, ["a", "e"])]),
        card={
            "input": {"layout": "nchw", "batches": False, "resize": crop(256), **IMAGENET_PIXELS},
            "output": {"classification": {"values": "logits"}},
        },
        recognized=["input.layout", "input.batches"],
        assumed=["task", "labels", "output.classification.values", *PIXEL_FIELDS],
        ignored=0,
    )


def ultralytics_classifier():
    graph = Graph()
    graph.op("Softmax", classifier(graph, "images", 3, "nchw"), axis=1, outputs=["output0"])
    write(
        "ultralytics-classifier",
        graph.model(
            [("images", F32, [1, 3, "height", "width"])],
            [("output0", F32, [1, 3])],
            {"task": "classify", "names": "{0: 'rust', 1: \"driver's seat\", 2: 'moss'}", "imgsz": "[96, 128]"},
        ),
        card={
            "labels": "labels.txt",
            "input": {
                "layout": "nchw", "channels": "rgb", "divide_by": 255.0, "mean": [0, 0, 0], "std": [1, 1, 1],
                "resize": {"stretch": {"width": 128, "height": 96}},
            },
            "output": {"classification": {"values": "probabilities"}},
        },
        recognized=["labels", "task", "input.layout", *PIXEL_FIELDS],
        assumed=[],
        ignored=0,
    )


def half_precision():
    graph = Graph()
    logits = classifier(graph, graph.op("Cast", "image", to=F32), 6, "nchw")
    graph.op("Cast", logits, to=F16, outputs=["logits"])
    write(
        "half-precision",
        graph.model([("image", F16, [1, 3, 64, 48])], [("logits", F16, [1, 6])]),
        card={
            "input": {"layout": "nchw", "type": "float16", "resize": {"stretch": {"width": 48, "height": 64}}, **IMAGENET_PIXELS},
            "output": {"classification": {"values": "logits"}},
        },
        recognized=["input.layout", "input.type"],
        assumed=["task", "labels", "output.classification.values", *PIXEL_FIELDS],
        ignored=0,
    )


def size_only_said_to_be_free():
    """Height and width have names and only 224 fits, as in many exports with too many dynamic axes."""
    graph = Graph()
    pooled = graph.op("AveragePool", "image", kernel_shape=[56, 56], strides=[56, 56])
    flat = graph.op("Reshape", pooled, graph.const([-1, 48], np.int64))
    graph.op("MatMul", flat, graph.const(random.normal(size=(48, 7))), outputs=["logits"])
    write(
        "size-only-said-to-be-free",
        graph.model([("image", F32, ["n", 3, "h", "w"])], [("logits", F32, ["n", 7])]),
        card={
            "input": {"layout": "nchw", "batches": True, "resize": crop(256), **IMAGENET_PIXELS},
            "output": {"classification": {"values": "logits"}},
        },
        recognized=["input.layout", "input.batches"],
        assumed=["task", "labels", "output.classification.values", *PIXEL_FIELDS],
        ignored=0,
    )


# Detectors: bright parts of a channel are boxes.


def patch_box(graph, plane, threshold, side_axes):
    """The four edges x1, y1, x2, y2 of where `plane` [H, W] is above `threshold`, as [1] each, the mean of the plane
    there, [1],
    and whether there is such a place, [1]."""
    mask = graph.op("Greater", plane, graph.const(threshold))
    as_float = graph.op("Cast", mask, to=F32)
    shape = graph.op("Shape", plane)
    edges = {}
    for name, axis, other in (("x", 1, 0), ("y", 0, 1)):
        profile = graph.op("ReduceMax", as_float, axes=[other], keepdims=0)
        there = graph.op("Greater", profile, graph.const(0.5))
        side = graph.op("Gather", shape, graph.const(axis, np.int64))
        places = graph.op("Cast", graph.op("Range", graph.const(0, np.int64), side, graph.const(1, np.int64)), to=F32)
        first = graph.op("Where", there, places, graph.const(1e6))
        last = graph.op("Where", there, places, graph.const(-1.0))
        edges[name + "1"] = graph.op("ReduceMin", first, axes=[0], keepdims=1)
        edges[name + "2"] = graph.op("Add", graph.op("ReduceMax", last, axes=[0], keepdims=1), graph.const([1.0]))
    area = graph.op("Reshape", graph.op("ReduceSum", as_float, keepdims=0), graph.const([1], np.int64))
    total = graph.op("Reshape", graph.op("ReduceSum", graph.op("Mul", plane, as_float), keepdims=0), graph.const([1], np.int64))
    mean = graph.op("Div", total, graph.op("Max", area, graph.const([1.0])))
    present = graph.op("Greater", area, graph.const([0.5]))
    return edges, mean, present


def channel(graph, image, index, axis):
    return graph.op("Squeeze", graph.op("Gather", image, graph.const([index], np.int64), axis=axis), graph.const([axis], np.int64))


def picture():
    """A red and a blue patch on gray; 200 x 150."""
    pixels = np.full((150, 200, 3), 90, np.uint8)
    pixels[30:70, 20:80] = (252, 40, 30)
    pixels[80:140, 110:190] = (30, 40, 251)
    return Image.fromarray(pixels)


ZOO_MEAN = np.array([102.9801, 115.9465, 122.7717], np.float32)
ZOO_THRESHOLD, ZOO_CLASSES = 120.0, {0: 3, 2: 17}


def zoo_faster_rcnn():
    graph = Graph()
    # Like a feature pyramid: halved five times and restored; sides must be multiples of 32.
    batch = graph.op("Unsqueeze", "image", graph.const([0], np.int64))
    small = graph.op("MaxPool", batch, kernel_shape=[32, 32], strides=[32, 32])
    large = graph.op("Resize", small, "", graph.const([1, 1, 32, 32]), mode="nearest")
    summed = graph.op("Add", batch, graph.op("Mul", large, graph.const(0.0)))
    image = graph.op("Squeeze", summed, graph.const([0], np.int64))
    boxes, labels, scores, present = [], [], [], []
    for index, label in ZOO_CLASSES.items():
        edges, mean, there = patch_box(graph, channel(graph, image, index, 0), ZOO_THRESHOLD, (1, 2))
        boxes.append(graph.op("Concat", *(edges[edge] for edge in ("x1", "y1", "x2", "y2")), axis=0))
        labels.append(graph.const([label], np.int64))
        scores.append(graph.op("Div", mean, graph.const([200.0])))
        present.append(there)
    # The whole padded tensor, as a box of class 80.
    sides = graph.op("Cast", graph.op("Gather", graph.op("Shape", "image"), graph.const([2, 1], np.int64)), to=F32)
    boxes.append(graph.op("Concat", graph.const([0.0, 0.0]), sides, axis=0))
    labels.append(graph.const([80], np.int64))
    scores.append(graph.const([0.25]))
    present.append(graph.const([True], bool))
    keep = graph.op("Concat", *present, axis=0)
    table = graph.op("Concat", *(graph.op("Unsqueeze", box, graph.const([0], np.int64)) for box in boxes), axis=0)
    graph.op("Compress", table, keep, axis=0, outputs=["6379"])
    graph.op("Compress", graph.op("Concat", *labels, axis=0), keep, axis=0, outputs=["6381"])
    graph.op("Compress", graph.op("Concat", *scores, axis=0), keep, axis=0, outputs=["6383"])
    model = graph.model(
        [("image", F32, [3, "height", "width"])],
        [("6379", F32, ["nbox", 4]), ("6381", I64, ["nbox"]), ("6383", F32, ["nbox"])],
    )
    photo = picture()
    detections, feed = zoo_by_hand(photo)
    check(model, {"image": feed}, lambda outputs, scale: outputs["6379"] * scale, detections, min(photo.size) / 800)
    write(
        "zoo-faster-rcnn",
        model,
        card={
            "task": "detection",
            "labels": "coco-80",
            "input": {
                "layout": "chw", "type": "float32", "channels": "bgr", "divide_by": 1.0, "mean": ZOO_MEAN.tolist(), "std": [1, 1, 1],
                "resize": {"short-side-pad": {"short_side": 800, "max_long_side": 1333, "pad_to_multiple": 32}},
            },
            "output": {"detection": {"box_format": "xyxy", "box_space": "model-pixels", "class_offset": -1}},
        },
        recognized=["task", "input.layout", "output.detection.boxes", "output.detection.labels", "output.detection.scores",
                    "output.detection.box_format", "output.detection.box_space"],
        assumed=["labels", "output.detection.class_offset", *PIXEL_FIELDS],
        ignored=0,
        detections=detections,
    )
    photo.save(HERE / "zoo-faster-rcnn" / "picture.png")


def zoo_by_hand(photo):
    """The ONNX Model Zoo's own preprocessing, and the objects to detect."""
    ratio = 800 / min(photo.size)
    assert max(photo.size) * ratio <= 1333
    resized = photo.resize((int(ratio * photo.width), int(ratio * photo.height)), Image.BILINEAR)
    bgr = np.asarray(resized)[:, :, ::-1].astype(np.float32) - ZOO_MEAN
    height, width = (-(-side // 32) * 32 for side in bgr.shape[:2])
    padded = np.zeros((3, height, width), np.float32)
    padded[:, : bgr.shape[0], : bgr.shape[1]] = bgr.transpose(2, 0, 1)
    found = [(label, padded[index], ZOO_THRESHOLD, 1 / 200) for index, label in ZOO_CLASSES.items()]
    detections = [by_hand(label - 1, plane, threshold, factor, 1 / ratio, 1 / ratio) for label, plane, threshold, factor in found]
    detections.append({"box": [0.0, 0.0, width / ratio, height / ratio], "class_id": 79, "score": 0.25})
    return detections, padded


def by_hand(class_id, plane, threshold, factor, scale_x, scale_y):
    rows, columns = np.nonzero(plane > threshold)
    box = [columns.min() * scale_x, rows.min() * scale_y, (columns.max() + 1) * scale_x, (rows.max() + 1) * scale_y]
    return {"box": [float(edge) for edge in box], "class_id": class_id, "score": float(plane[rows, columns].mean(dtype=np.float64) * factor)}


TF_THRESHOLD, TF_CLASSES, TF_FACTORS = 215.0, {0: 17, 2: 47}, {0: 0.9 / 255, 2: 0.5 / 255}
BOXES, ANCHORS, CLASSES = 5, 7, 91


def tf_object_detection():
    graph = Graph()
    pixels = graph.op("Squeeze", graph.op("Cast", "input_tensor", to=F32), graph.const([0], np.int64))
    sides = graph.op("Cast", graph.op("Shape", pixels), to=F32)
    height, width = (graph.op("Gather", sides, graph.const([axis], np.int64)) for axis in (0, 1))
    boxes, labels, scores, present = [], [], [], []
    for index, label in TF_CLASSES.items():
        edges, mean, there = patch_box(graph, channel(graph, pixels, index, 2), TF_THRESHOLD, (0, 1))
        shares = [graph.op("Div", edges[edge], height if edge[0] == "y" else width) for edge in ("y1", "x1", "y2", "x2")]
        boxes.append(graph.op("Unsqueeze", graph.op("Concat", *shares, axis=0), graph.const([0], np.int64)))
        labels.append(graph.const([float(label)]))
        scores.append(graph.op("Mul", mean, graph.const([TF_FACTORS[index]])))
        present.append(there)
    keep = graph.op("Concat", *present, axis=0)
    number = graph.op("ReduceSum", graph.op("Cast", keep, to=F32), keepdims=1, outputs=["num_detections"])
    missing = graph.op("Sub", graph.const([BOXES], np.int64), graph.op("Cast", number, to=I64))
    zero = graph.const([0], np.int64)

    def fill(parts, output, columns):
        """The existing parts, zeros up to BOXES rows, and a batch of one."""
        rows = graph.op("Compress", graph.op("Concat", *parts, axis=0), keep, axis=0)
        ends = [zero, missing] if columns is None else [zero, zero, missing, zero]
        padded = graph.op("Pad", rows, graph.op("Concat", *ends, axis=0))
        graph.op("Unsqueeze", padded, zero, outputs=[output])

    fill(boxes, "detection_boxes", 4)
    fill(labels, "detection_classes", None)
    fill(scores, "detection_scores", None)
    fill([graph.const([1203.0]), graph.const([88.0])], "detection_anchor_indices", None)
    table = graph.const(np.linspace(0, 1, BOXES * CLASSES).reshape(1, BOXES, CLASSES))
    graph.op("Identity", table, outputs=["detection_multiclass_scores"])
    raw = random.uniform(0, 0.5, size=(1, ANCHORS, 4))
    raw[:, :, 2:] += raw[:, :, :2]
    graph.op("Identity", graph.const(raw), outputs=["raw_detection_boxes"])
    graph.op("Identity", graph.const(random.uniform(size=(1, ANCHORS, CLASSES))), outputs=["raw_detection_scores"])
    model = graph.model(
        [("input_tensor", U8, [1, "height", "width", 3])],
        [
            ("detection_anchor_indices", F32, [1, BOXES]),
            ("detection_boxes", F32, [1, BOXES, 4]),
            ("detection_classes", F32, [1, BOXES]),
            ("detection_multiclass_scores", F32, [1, BOXES, CLASSES]),
            ("detection_scores", F32, [1, BOXES]),
            ("num_detections", F32, [1]),
            ("raw_detection_boxes", F32, [1, ANCHORS, 4]),
            ("raw_detection_scores", F32, [1, ANCHORS, CLASSES]),
        ],
    )
    photo = picture()
    planes = np.asarray(photo).astype(np.float32)
    detections = [by_hand(label, planes[:, :, index], TF_THRESHOLD, TF_FACTORS[index], 1, 1) for index, label in TF_CLASSES.items()]
    to_pixels = lambda outputs, size: outputs["detection_boxes"][0][:, [1, 0, 3, 2]] * [*size, *size]
    check(model, {"input_tensor": np.asarray(photo)[None]}, to_pixels, detections, photo.size)
    write(
        "tf-object-detection",
        model,
        card={
            "task": "detection",
            "labels": "coco-91",
            "input": {"layout": "nhwc", "type": "uint8", "resize": {"keep": {}}, **RAW_PIXELS},
            "output": {"detection": {"box_format": "yxyx", "box_space": "normalized", "class_offset": 0, "max_boxes_in_graph": BOXES}},
        },
        recognized=["task", "input.layout", "input.type", "input.divide_by", "output.detection.boxes", "output.detection.labels",
                    "output.detection.scores", "output.detection.count", "output.detection.box_format", "output.detection.box_space"],
        assumed=["labels", "output.detection.class_offset", "input.channels", "input.resize"],
        ignored=4,
        detections=detections,
    )
    photo.save(HERE / "tf-object-detection" / "picture.png")


def mlperf_ssd():
    """Normalized boxes that are not TensorFlow's: only where they move to tells that x comes first."""
    graph = Graph()
    batch = graph.op("Squeeze", "image", graph.const([0], np.int64))
    small = graph.op("Slice", batch, graph.const([0, 0], np.int64), graph.const([1200, 1200], np.int64), graph.const([1, 2], np.int64), graph.const([10, 10], np.int64))
    edges, mean, _ = patch_box(graph, channel(graph, small, 0, 0), 0.8, (1, 2))
    box = graph.op("Concat", *(graph.op("Div", edges[edge], graph.const(120.0)) for edge in ("x1", "y1", "x2", "y2")), axis=0)
    boxes = graph.op("Reshape", box, graph.const([1, 1, 4], np.int64))
    graph.op("Concat", boxes, graph.const([[[0.1, 0.2, 0.9, 0.8]]]), axis=1, outputs=["bboxes"])
    score = graph.op("Reshape", graph.op("Sigmoid", mean), graph.const([1, 1], np.int64))
    graph.op("Concat", score, graph.const([[0.25]]), axis=1, outputs=["scores"])
    label = graph.op("Cast", graph.op("Mul", score, graph.const(0.0)), to=I64)
    graph.op("Add", label, graph.const([[17, 84]], np.int64), outputs=["labels"])
    write(
        "mlperf-ssd-resnet34",
        graph.model(
            [("image", F32, [1, 3, 1200, 1200])],
            [("bboxes", F32, [1, "nbox", 4]), ("labels", I64, [1, "nbox"]), ("scores", F32, [1, "nbox"])],
        ),
        card={
            "task": "detection",
            "labels": "coco-91",
            "input": {
                "layout": "nchw", "channels": "rgb", "divide_by": 255.0, "mean": IMAGENET_PIXELS["mean"], "std": IMAGENET_PIXELS["std"],
                "resize": {"stretch": {"width": 1200, "height": 1200}},
            },
            "output": {"detection": {"box_format": "xyxy", "box_space": "normalized", "class_offset": 0}},
        },
        recognized=["task", "input.layout", "output.detection.boxes", "output.detection.labels", "output.detection.scores",
                    "output.detection.box_format", "output.detection.box_space"],
        assumed=["labels", "output.detection.class_offset", *PIXEL_FIELDS],
        ignored=0,
    )


def check(model, feed, to_pixels, detections, scale):
    """Checks that the graph and the manual numbers agree, otherwise the case would prove nothing."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = dict(zip([port.name for port in session.get_outputs()], session.run(None, feed)))
    got = np.asarray(to_pixels(outputs, scale))[: len(detections)]
    np.testing.assert_allclose(got, [detection["box"] for detection in detections], atol=1e-3)


# Unusable graphs.


def refused_centerface():
    """Heat map, sizes, offsets and landmarks of a face detector, all of them maps of a quarter of the input's sides."""
    graph = Graph()
    small = graph.op("AveragePool", "input.1", kernel_shape=[4, 4], strides=[4, 4])
    outputs = []
    for name, channels in (("537", 1), ("538", 2), ("539", 2), ("540", 10)):
        weights = graph.const(random.normal(size=(channels, 3, 1, 1)) * 0.01)
        outputs.append((name, F32, [1, channels, 160, 160]))
        if name == "537":
            graph.op("Sigmoid", graph.op("Conv", small, weights), outputs=[name])
        else:
            graph.op("Conv", small, weights, outputs=[name])
    write(
        "refused-centerface",
        graph.model([("input.1", F32, [1, 3, 640, 640])], outputs),
        refused="CenterNet or CenterFace before decoding",
        nearest="CenterNet",
        shapes=[str(shape) for _, _, shape in outputs],
    )


def refusals():
    graph = Graph()
    graph.op("Identity", classifier(graph, "image", 10, "nchw"), outputs=["logits"])
    image = ("image", F32, [1, 3, 32, 32])
    logits = ("logits", F32, [1, 10])
    graph.op("Add", "logits", "threshold", outputs=["y"])
    write("refused-two-inputs", graph.model([image, ("threshold", F32, [1])], [("y", F32, [1, 10])]), refused="the graph needs threshold float32 [1] in addition to the image")

    graph = Graph()
    graph.op("Cast", "tokens", to=F32, outputs=["y"])
    write("refused-no-image", graph.model([("tokens", I64, [1, 128])], [("y", F32, [1, 128])]), refused="int64")

    graph = Graph()
    graph.op("ReduceMean", "planes", axes=[2, 3], keepdims=0, outputs=["y"])
    write("refused-two-channels", graph.model([("planes", F32, [1, 2, 28, 28])], [("y", F32, [1, 2])]), refused="have a dimension of 3")

    graph = Graph()
    graph.op("Identity", classifier(graph, "image", 10, "nchw"), outputs=["logits"])
    write("refused-gigantic", graph.model([("image", F32, [1, 3, 1000000, 1000000])], [("logits", F32, [1, 10])]), refused="1 to 16384 pixels")

    graph = Graph()
    graph.op("Identity", classifier(graph, "image", 10, "nchw"), outputs=["logits"])

    graph = Graph()
    scaled = graph.op("QuantizeLinear", classifier(graph, "image", 10, "nchw"), graph.const(0.05), graph.const(128, np.uint8), outputs=["y"])
    write("refused-8-bit-logits", graph.model([image], [("y", U8, [1, 10])]), refused="do not sum to 255")

    graph = Graph()
    means = graph.op("ReduceMean", "images", axes=[1, 2, 3], keepdims=1)
    squeezed = graph.op("Squeeze", means, graph.const([3], np.int64))
    graph.op("Mul", squeezed, graph.const(random.uniform(size=(1, 90, 100))), outputs=["output0"])
    write("refused-raw-yolo", graph.model([("images", F32, [1, 3, 64, 64])], [("output0", F32, [1, 90, 100])]), refused="output0 float32 [1, 90, 100]", nearest="YOLO")

    graph = Graph()
    whole = graph.op("ReduceMax", "image", axes=[0, 1, 2], keepdims=0)
    zero = graph.op("Mul", whole, graph.const(0.0))
    graph.op("Add", graph.const([[160, 90, -20, -30], [40, 200, -60, -10]]), zero, outputs=["boxes"])
    graph.op("Add", graph.const([0.9, 0.4]), zero, outputs=["scores"])
    graph.op("Cast", graph.op("Add", graph.const([3.0, 5.0]), zero), to=I64, outputs=["labels"])
    outputs = [("boxes", F32, [2, 4]), ("labels", I64, [2]), ("scores", F32, [2])]
    write("refused-negative-sizes", graph.model([("image", F32, [3, "h", "w"])], outputs), refused="neither two corners nor center and size")

    graph = Graph()
    graph.op("Frobnicate", "image", outputs=["logits"], domain="com.example")
    extra = [helper.make_opsetid("com.example", 1)]
    write("refused-unknown-operator", graph.model([image], [logits], extra_opsets=extra), refused="operator")

    graph = Graph()
    graph.op("Identity", classifier(graph, "image", 10, "nchw"), outputs=["logits"])
    write("refused-opset-too-new", graph.model([image], [logits], opset=99), refused="older opset")


if __name__ == "__main__":
    mlperf_resnet()
    arg_max_only()
    caffe2_resnet()
    tensorflow_resnet()
    quantized_mobilenet()
    keras_cifar()
    all_dimensions_free()
    ultralytics_classifier()
    half_precision()
    size_only_said_to_be_free()
    zoo_faster_rcnn()
    tf_object_detection()
    mlperf_ssd()
    refusals()
    refused_centerface()
