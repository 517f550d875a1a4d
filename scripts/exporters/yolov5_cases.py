"""YOLOv5's export.py and YOLOv7's, from the packages that contain them (AGPL and GPL: they are only called by users
who installed them)."""

import functools
import sys
import types

from .common import Case, detections, export, onnx_session, settle, spread, tensors, through_torchscript

SIZE = 640
CLASSES = 80
ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]


def make_yolov5(folder, images, maps=False, dynamic=False):
    import cv2
    import numpy
    import torch
    import yolov5
    from yolov5.export import export_onnx
    from yolov5.models.yolo import DetectionModel
    from yolov5.utils.augmentations import letterbox
    from yolov5.utils.general import non_max_suppression, scale_boxes

    torch.manual_seed(0)
    model = DetectionModel(f"{yolov5.__path__[0]}/models/yolov5n.yaml").eval()
    model.names = {index: f"thing {index}" for index in range(CLASSES)}
    prepare(model, tensors(images, SIZE, SIZE))
    model.fuse()
    head = model.model[-1]
    # Without `export`, the three maps are outputs as well, as in files of version 5 and earlier.
    head.export, head.dynamic, head.inplace = not maps, dynamic, False
    blank = torch.zeros(1, 3, SIZE, SIZE)
    model(blank)
    through_torchscript()
    export_onnx(model, blank, folder / "model.pt", 12, dynamic, False)
    session = onnx_session(folder)
    predictions = {}
    for image in images:
        # Like detect.py and its LoadImages with an ONNX file, before boxes are rounded to whole pixels for drawing.
        original = cv2.imread(str(image))
        boxed = letterbox(original, SIZE, stride=32, auto=False)[0].transpose(2, 0, 1)[::-1]
        tensor = torch.from_numpy(numpy.ascontiguousarray(boxed)).float() / 255
        out = torch.from_numpy(session.run(None, {"images": tensor[None].numpy()})[0])
        found = non_max_suppression(out, 0.25, 0.45, max_det=1000)[0]
        found[:, :4] = scale_boxes((SIZE, SIZE), found[:, :4], original.shape)
        predictions[image.name] = detections(found[:, :4], found[:, 4], found[:, 5], model.names)
    return predictions


def prepare(model, batch):
    """A few hundred boxes: all channels of the last layers equal, with a low mean objectness."""
    import torch

    settle(model, batch)
    model.eval()
    head = model.model[-1]
    spread(list(head.m), lambda: model(batch), deviation=0.7)
    with torch.no_grad():
        for layer in head.m:
            bias = layer.bias.view(head.na, head.no)
            bias[:, 4] -= 2.0
            # Classes differ in the mean, so that the best one is far from the next.
            bias[:, 5:] += torch.randn(head.na, CLASSES) * 0.7


def make_yolov7(folder, images, end_to_end=False):
    import cv2
    import numpy
    import torch

    # Required by modules that are not used here.
    sys.modules.setdefault("wget", types.ModuleType("wget"))
    from yolov7_package.models.experimental import End2End
    from yolov7_package.models.yolo import Model
    from yolov7_package.utils.datasets import letterbox
    from yolov7_package.utils.general import non_max_suppression, scale_coords

    torch.manual_seed(0)
    model = Model(yolov7_network()).eval()
    model.names = [f"thing {index}" for index in range(CLASSES)]
    prepare(model, tensors(images, SIZE, SIZE))
    model.fuse()
    model.eval()
    head = model.model[-1]
    head.export, head.end2end, head.concat, head.include_nms = False, end_to_end, not end_to_end, False
    blank = torch.zeros(1, 3, SIZE, SIZE)
    if end_to_end:
        # The limits of export.py, with the lower score of detect.py.
        exported, outputs = End2End(model, 100, 0.45, 0.25, SIZE, torch.device("cpu")).eval(), ["output"]
        export(exported, (blank,), folder, ["images"], outputs, {"output": {0: "num_dets"}}, opset=12)
    else:
        exported, outputs = model, ["output"]
        export(exported, (blank,), folder, ["images"], outputs, None, opset=12)
    session = onnx_session(folder)
    predictions = {}
    for image in images:
        original = cv2.imread(str(image))
        boxed = letterbox(original, SIZE, stride=32, auto=False)[0][:, :, ::-1].transpose(2, 0, 1)
        tensor = torch.from_numpy(numpy.ascontiguousarray(boxed)).float() / 255
        out = torch.from_numpy(session.run(None, {"images": tensor[None].numpy()})[0])
        if end_to_end:
            found = torch.cat([out[:, 1:5], out[:, 6:7], out[:, 5:6]], 1)
        else:
            found = non_max_suppression(out, 0.25, 0.45)[0]
        found[:, :4] = scale_coords((SIZE, SIZE), found[:, :4], original.shape)
        predictions[image.name] = detections(found[:, :4], found[:, 4], found[:, 5])
    return predictions


def yolov7_network():
    """A short backbone; the head is YOLOv7's."""
    conv = "Conv"
    return {
        "nc": CLASSES,
        "depth_multiple": 1.0,
        "width_multiple": 1.0,
        "anchors": ANCHORS,
        "backbone": [
            [-1, 1, conv, [16, 3, 2]],
            [-1, 1, conv, [32, 3, 2]],
            [-1, 1, conv, [32, 3, 1]],
            [-1, 1, conv, [64, 3, 2]],
            [-1, 1, conv, [64, 3, 1]],
            [-1, 1, conv, [128, 3, 2]],
            [-1, 1, conv, [128, 3, 1]],
            [-1, 1, conv, [128, 3, 2]],
        ],
        "head": [
            [-1, 1, "SPPCSPC", [128]],
            [[4, 6, 8], 1, "Detect", ["nc", "anchors"]],
        ],
    }


def yolov5_case(name, family, **options):
    return Case(name, family, "yolov5", "yolov5", functools.partial(make_yolov5, **options), clipped=True,
                limit=1000)


def yolov7_case(name, family, limit=300, **options):
    return Case(name, family, "yolov7", "yolov7_package", functools.partial(make_yolov7, **options), clipped=True,
                limit=limit)


CASES = [
    yolov5_case("yolov5n", "YOLOv5 export.py"),
    yolov5_case("yolov5n-maps", "YOLOv5 with three raw maps", maps=True),
    yolov5_case("yolov5n-dynamic", "YOLOv5 export.py --dynamic", dynamic=True),
    yolov7_case("yolov7", "YOLOv7 --grid"),
    yolov7_case("yolov7-end2end", "YOLOv7 --end2end", limit=100, end_to_end=True),
]
