"""Ultralytics: detection, its relatives, RT-DETR and classification. AGPL: the package is only called by users who
installed it; nothing of it is in this repository."""

import functools
import shutil

from .common import Case, classes, detections, settle, spread, tensors, through_torchscript


def make(folder, images, config="yolov8n.yaml", imgsz=640, **options):
    import torch
    import ultralytics

    if ultralytics.__version__ < "8.4":
        through_torchscript()
    torch.manual_seed(0)
    kind = ultralytics.RTDETR if config.startswith("rtdetr") else ultralytics.YOLO
    model = kind(config)
    network = model.model
    names = {index: f"thing {index}" for index in range(len(network.names))}
    network.names = names
    batch = tensors(images, *((imgsz, imgsz) if isinstance(imgsz, int) else imgsz))
    prepare(network, batch)
    exported = model.export(format="onnx", imgsz=imgsz, simplify=True, project=str(folder), **options)
    shutil.move(exported, folder / "model.onnx")
    task = model.task
    again = kind(str(folder / "model.onnx"), *([] if kind is ultralytics.RTDETR else [task]))
    predictions = {}
    for image in images:
        # Without settings: its own size, score 0.25 and IoU 0.7.
        result = again.predict(str(image), device="cpu", verbose=False, save=False, imgsz=imgsz)[0]
        if task == "classify":
            predictions[image.name] = classes(result.probs.data.tolist())
        elif task == "obb":
            # Without their angle, as shown by Spotcheck.
            found = result.obb
            center, size = found.xywhr[:, :2], found.xywhr[:, 2:4]
            boxes = torch.cat([center - size / 2, center + size / 2], 1)
            predictions[image.name] = detections(boxes, found.conf, found.cls, names)
        else:
            found = result.boxes
            predictions[image.name] = detections(found.xyxy.tolist(), found.conf, found.cls, names)
    return predictions


def prepare(network, batch):
    """Random weights with a few hundred boxes, or with scores that differ."""
    network.float().eval()
    settle(network, batch)
    head = network.model[-1]

    def forward():
        network.eval()
        network(batch)

    if hasattr(head, "linear"):
        spread([head.linear], forward, deviation=3.0)
        return
    if hasattr(head, "dec_score_head"):
        spread([head.dec_score_head[-1]], forward, above=(50, -1.1, 4.0))
        spread([head.dec_bbox_head[-1].layers[-1]], forward, deviation=0.7)
        return
    # Distances in bins, or as one number each.
    mean, deviation = (0.0, 1.5) if head.reg_max > 1 else (4.0, 0.3)
    for prefix in ["", "one2one_"]:
        boxes, scores = getattr(head, f"{prefix}cv2", None), getattr(head, f"{prefix}cv3", None)
        if boxes is not None and scores is not None:
            spread([branch[-1] for branch in boxes], forward, deviation=deviation, mean=mean)
            spread([branch[-1] for branch in scores], forward, above=(200, -1.1, 4.0))


def case(name, family, task="detect", package="ultralytics", environment="torch", **options):
    return Case(name, family, environment, package, functools.partial(make, **options), limit=300,
                clipped=task not in ("rtdetr", "obb"))


CASES = [
    case("yolov8n", "YOLOv8", config="yolov8n.yaml"),
    case("yolov8n-dynamic", "YOLOv8, dynamic=True", config="yolov8n.yaml", dynamic=True),
    case("yolov8n-nms", "YOLOv8, nms=True", config="yolov8n.yaml", nms=True),
    case("yolov8n-half", "YOLOv8, half=True", config="yolov8n.yaml", half=True),
    case("yolov8n-480x640", "YOLOv8, imgsz=[480, 640]", config="yolov8n.yaml", imgsz=[480, 640]),
    case("yolov8n-batch4", "YOLOv8, batch=4", config="yolov8n.yaml", batch=4),
    case("yolov5nu", "YOLOv5u", config="yolov5n.yaml"),
    case("yolov9t", "YOLOv9", config="yolov9t.yaml"),
    case("yolov10n", "YOLOv10", config="yolov10n.yaml"),
    case("yolo11n", "YOLO11", config="yolo11n.yaml"),
    case("yolo12n", "YOLO12", config="yolo12n.yaml"),
    case("yolo26n", "YOLO26", config="yolo26n.yaml"),
    case("yolo26n-dynamic", "YOLO26, dynamic=True", config="yolo26n.yaml", dynamic=True),
    case("yolo26n-end2end", "YOLO26, nms=False (end to end)", config="yolo26n.yaml", nms=False),
    case("yolov10n-end2end", "YOLOv10, nms=False (end to end)", config="yolov10n.yaml", nms=False),
    case("rtdetr-l", "Ultralytics RT-DETR", task="rtdetr", config="rtdetr-l.yaml"),
    case("yolov8n-seg", "YOLOv8-seg", config="yolov8n-seg.yaml"),
    case("yolov8n-pose", "YOLOv8-pose", config="yolov8n-pose.yaml"),
    case("yolov8n-obb", "YOLOv8-obb", task="obb", config="yolov8n-obb.yaml"),
    case("yolo26n-seg", "YOLO26-seg", config="yolo26n-seg.yaml"),
    case("yolov8n-cls", "YOLOv8-cls", task="classify", config="yolov8n-cls.yaml", imgsz=224),
    case("yolo26n-cls", "YOLO26-cls", task="classify", config="yolo26n-cls.yaml", imgsz=224),
    case("yolov8n-8.1", "YOLOv8", environment="ultralytics-8.1", config="yolov8n.yaml"),
    case("rtdetr-l-8.1", "Ultralytics RT-DETR", task="rtdetr", environment="ultralytics-8.1", config="rtdetr-l.yaml"),
    case("yolo11n-8.3", "YOLO11", environment="ultralytics-8.3", config="yolo11n.yaml"),
    case("yolov8n-cls-8.3", "YOLOv8-cls", task="classify", environment="ultralytics-8.3", config="yolov8n-cls.yaml",
         imgsz=224),
    case("yolov10n-8.3", "YOLOv10", environment="ultralytics-8.3", config="yolov10n.yaml"),
    case("yolov8n-dynamic-8.3", "YOLOv8, dynamic=True", environment="ultralytics-8.3", config="yolov8n.yaml",
         dynamic=True),
]
