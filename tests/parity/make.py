"""Architecture parity: torchvision's ResNet-50 and its Faster R-CNN with FPN, and the predictions of torch.

usage: python make.py PHOTO...        (pip install torch==2.8.0 torchvision==0.23.0 onnx onnxruntime pillow numpy)
Both graphs have the full depth and every operator of the real ones, an eighth of the width, and seeded random weights;
batch normalization is calibrated on the images, so that the values stay in the range of trained ones.
Writes resnet50/ and faster-rcnn/, each with model.onnx, model.toml and expected.json: torch's prediction
for each image, with torchvision's own transforms on Pillow's images. Needed to recreate the cases, not for testing.

The images are chelsea.png, coffee.png and grace_hopper.jpg. Not every size works: the detector scales the
short side to floor(side * (256 / side)), which torch and ONNX may round to 256 and to 255; compare() below shows it.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
import onnxruntime
import torch
import torchvision
from PIL import Image, ImageOps
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.resnet import Bottleneck, ResNet
from torchvision.transforms import v2

HERE = pathlib.Path(__file__).parent
NARROWER = 8
DETECTOR_SEED = 12
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class NarrowResNet50(ResNet):
    """torchvision's ResNet-50 with an eighth of the planes in each stage."""

    def __init__(self):
        super().__init__(Bottleneck, [3, 4, 6, 3])
        self.fc = torch.nn.Linear(512 // NARROWER * Bottleneck.expansion, 1000)

    def _make_layer(self, block, planes, *arguments, **keywords):
        return super()._make_layer(block, planes // NARROWER, *arguments, **keywords)


def calibrate(model, run):
    """Sets the running statistics of batch normalization to those of the images."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
            module.train()
    with torch.no_grad():
        run()
    model.eval()


def upright(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def write(case, card, expected):
    folder = HERE / case
    weights = (folder / "model.onnx").read_bytes()
    assert len(weights) < 5_000_000, f"{case}: {len(weights)} bytes are too many to commit"
    card = card.replace("@BYTES@", str(len(weights))).replace("@SHA256@", hashlib.sha256(weights).hexdigest())
    (folder / "model.toml").write_text(card)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print(case, len(weights), "bytes")


CARD = """\
id = "{id}"
name = "{name}"
task = "{task}"
license = "MIT OR Apache-2.0"
origin = "tests/parity/make.py: torchvision's architecture, random weights"

[file]
name = "model.onnx"
bytes = @BYTES@
sha256 = "@SHA256@"

"""

RESNET_CARD = (
    CARD.format(id="parity-resnet50", name="ResNet-50, narrow, random", task="classification")
    + f"""\
[input]
layout = "nchw"
type = "float32"
divide_by = 255.0
mean = {MEAN}
std = {STD}
batches = true

[input.resize.short-side-crop]
short_side = 256
long_side = "down"
crop_width = 224
crop_height = 224
crop_offset = "half-even"

[output.classification]
values = "logits"
"""
)

DETECTOR_CARD = (
    CARD.format(id="parity-faster-rcnn", name="Faster R-CNN, narrow, random", task="detection")
    + """\
[input]
layout = "chw"
type = "float32"
divide_by = 255.0

[input.resize.keep]

[output.detection]
boxes = "boxes"
labels = "labels"
scores = "scores"
box_format = "xyxy"
box_space = "model-pixels"
min_score_in_graph = 0.05
nms_iou_in_graph = 0.5
max_boxes_in_graph = 100
"""
)


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def resnet50(photos):
    torch.manual_seed(50)
    model = NarrowResNet50()
    # As torchvision.models.ResNet50_Weights.IMAGENET1K_V1.transforms() does with an image of Pillow.
    transform = v2.Compose(
        [
            v2.Resize(256),
            v2.CenterCrop(224),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    inputs = {path.name: transform(upright(path))[None] for path in photos}
    batch = torch.cat(list(inputs.values()))
    calibrate(model, lambda: model(batch))
    with torch.no_grad():
        # Logits with the spread of a trained network, so that the softmax distinguishes images.
        model.fc.weight.mul_(6.0 / model(batch).std())
    path = HERE / "resnet50" / "model.onnx"
    path.parent.mkdir(exist_ok=True)
    torch.onnx.export(
        model,
        (batch[:1],),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["input"],
        output_names=["logits"],
        dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}},
    )
    expected = {}
    for name, tensor in inputs.items():
        with torch.no_grad():
            scores = torch.softmax(model(tensor)[0].double(), 0)
        best = torch.argsort(scores, descending=True)[:5]
        expected[name] = {"classes": [{"index": int(i), "score": float(scores[i])} for i in best]}
        [got] = session(path).run(None, {"input": tensor.numpy()})
        difference = np.abs(torch.softmax(torch.from_numpy(got[0]).double(), 0).numpy() - scores.numpy()).max()
        print("resnet50", name, [f"{float(scores[i]):.3f}" for i in best], "onnxruntime differs by", difference)
    write("resnet50", RESNET_CARD, expected)


def compare(name, expected, got):
    """Prints the largest differences, except boxes near the threshold or the limit of a hundred."""
    cut_off = max(0.06, expected[2].min() + 0.002)
    worst_box = worst_score = 0.0
    for boxes, labels, scores, others in ((*expected, got), (*got, expected)):
        for box, label, score in zip(boxes, labels, scores):
            if score < cut_off:
                continue
            same_class = np.flatnonzero(others[1] == label)
            distance = np.abs(others[0][same_class] - box).max(1) if len(same_class) else np.array([np.inf])
            nearest = distance.argmin()
            worst_box = max(worst_box, distance[nearest])
            if len(same_class):
                worst_score = max(worst_score, abs(others[2][same_class[nearest]] - score))
    print("faster-rcnn", name, len(expected[2]), "boxes, scores", expected[2].min(), "to", expected[2].max(), end=" ")
    print(len(set(expected[1].tolist())), "classes; boxes differ by", worst_box, "scores by", worst_score)


def spread(model, images):
    """Spreads the objectness of the proposals, the classes and the boxes as training does: random weights leave all of
    them nearly equal, and then the order of equals would be tested instead of the arithmetic."""
    heads = [
        *((block[0], 1.0) for block in model.backbone.fpn.inner_blocks),
        *((block[0], 1.0) for block in model.backbone.fpn.layer_blocks),
        (model.roi_heads.box_head.fc6, 1.0),
        (model.roi_heads.box_head.fc7, 1.0),
        (model.rpn.head.cls_logits, 2.0),
        (model.rpn.head.bbox_pred, 0.1),
        (model.roi_heads.box_predictor.cls_score, 0.8),
        (model.roi_heads.box_predictor.bbox_pred, 0.3),
    ]
    for head, wanted in heads:
        seen = []
        hook = head.register_forward_hook(
            lambda _module, _inputs, out: seen.append(out.movedim(1, -1).reshape(-1, out.shape[1]))
        )
        with torch.no_grad():
            model(images)
            values = torch.cat(seen)
            scale = wanted / (values - values.mean(0)).std()
            head.weight.mul_(scale)
            head.bias.copy_((head.bias - values.mean(0)) * scale)
        hook.remove()


def faster_rcnn(photos):
    torch.manual_seed(DETECTOR_SEED)
    body = NarrowResNet50()
    stages = {f"layer{stage}": str(stage - 1) for stage in (1, 2, 3, 4)}
    channels = [256 // NARROWER << stage for stage in range(4)]
    backbone = BackboneWithFPN(body, stages, channels, 32)
    assert isinstance(backbone.body, IntermediateLayerGetter)
    model = FasterRCNN(backbone, num_classes=91, min_size=256, max_size=416, box_score_thresh=0.05)
    model.roi_heads.box_head.fc6 = torch.nn.Linear(32 * 7 * 7, 128)
    model.roi_heads.box_head.fc7 = torch.nn.Linear(128, 128)
    model.roi_heads.box_predictor.cls_score = torch.nn.Linear(128, 91)
    model.roi_heads.box_predictor.bbox_pred = torch.nn.Linear(128, 91 * 4)
    images = {
        path.name: v2.functional.to_dtype(v2.functional.pil_to_tensor(upright(path)), scale=True) for path in photos
    }
    model.eval()
    calibrate(model, lambda: [model([image]) for image in images.values()])
    spread(model, list(images.values()))
    path = HERE / "faster-rcnn" / "model.onnx"
    path.parent.mkdir(exist_ok=True)
    torch.onnx.export(
        model,
        ([next(iter(images.values()))],),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=["boxes", "labels", "scores"],
        dynamic_axes={"image": {1: "height", 2: "width"}, "boxes": {0: "n"}, "labels": {0: "n"}, "scores": {0: "n"}},
    )
    expected = {}
    for name, image in images.items():
        with torch.no_grad():
            [prediction] = model([image])
        expected[name] = {
            "detections": [
                {"box": [float(edge) for edge in box], "class_id": int(label), "score": float(score)}
                for box, label, score in zip(prediction["boxes"], prediction["labels"], prediction["scores"])
            ]
        }
        boxes, labels, scores = session(path).run(None, {"image": image.numpy()})
        # Detections must not depend on tiny differences, or the case would fail on a CPU that rounds differently.
        with torch.no_grad():
            [shaken] = model([image * (1 + 2e-7 * torch.randn_like(image))])
        for other in ((boxes, labels, scores), [shaken[key].numpy() for key in ("boxes", "labels", "scores")]):
            compare(name, [prediction[key].numpy() for key in ("boxes", "labels", "scores")], other)
    write("faster-rcnn", DETECTOR_CARD, expected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    photos = sorted(pathlib.Path(argument) for argument in sys.argv[1:])
    resnet50(photos)
    faster_rcnn(photos)
