"""Small classifiers with the files that their exporters write beside them, and what the exporters' own code predicts.

usage: python make_classifiers.py        (pip install onnx==1.23.2 onnxruntime==1.32.0 pillow==13.0.0 numpy==2.4.6)
Writes the folders of CASES, as make.py does, with "classes": the probabilities for assets/samples/chelsea.png. The
graphs are random, and look at single pixels, so that a wrong size, crop, interpolation, channel order, mean or std
shows. Images are prepared below with Pillow and NumPy, by the rules that each package publishes.
"""

import json
import pathlib

import numpy as np
import onnxruntime
from make import F32, HERE, Graph, write
from PIL import Image

IMAGE = "assets/samples/chelsea.png"
PHOTO = Image.open(HERE.parents[2] / IMAGE).convert("RGB")
random = np.random.default_rng(11)
IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def short_side(image, side, method):
    """torchvision's and transformers' rule: the long side is rounded down."""
    width, height = image.size
    if width <= height:
        return image.resize((side, int(side * height / width)), method)
    return image.resize((int(side * width / height), side), method)


def middle(image, side, offset):
    left, top = offset((image.width - side) / 2), offset((image.height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def normalised(image, divide_by=255.0, mean=(0, 0, 0), std=(1, 1, 1)):
    return (np.asarray(image, np.float64) / divide_by - np.asarray(mean)) / np.asarray(std)


def crop_rule(short, side, offset):
    return {
        "short-side-crop": {
            "short_side": short, "long_side": "down", "crop_width": side, "crop_height": side, "crop_offset": offset
        }
    }


def stretch_rule(side):
    return {"stretch": {"width": side, "height": side}}


def make(case, side, pixels, names, files, resize, interpolation, metadata=None, softmax=False, channels="rgb"):
    """`pixels` [side, side, 3] are those of the exporter; `names` those that the card must have."""
    graph = Graph()
    pooled = graph.op("MaxPool", "pixel_values", kernel_shape=[1, 1], strides=[side // 8, side // 8])
    features = len(range(0, side, side // 8)) ** 2 * 3
    flat = graph.op("Reshape", pooled, graph.const([1, features], np.int64))
    logits = graph.op("MatMul", flat, graph.const(random.normal(size=(features, len(names))) * 0.2))
    graph.op("Softmax" if softmax else "Identity", logits, outputs=["logits"], **({"axis": 1} if softmax else {}))
    model = graph.model([("pixel_values", F32, [1, 3, side, side])], [("logits", F32, [1, len(names)])], metadata)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    tensor = pixels.transpose(2, 0, 1)[None].astype(np.float32)
    values = session.run(None, {"pixel_values": tensor})[0][0].astype(np.float64)
    scores = values if softmax else np.exp(values - values.max()) / np.exp(values - values.max()).sum()
    fields = ["input.channels", "input.divide_by", "input.mean", "input.std", "input.resize", "input.interpolation"]
    write(
        case,
        model,
        card={
            "task": "classification",
            "labels": "labels.txt",
            "input": {
                "layout": "nchw", "channels": channels, "resize": resize,
                **({} if interpolation == "pillow-bilinear" else {"interpolation": interpolation}),
            },
            "output": {"classification": {"values": "probabilities" if softmax else "logits"}},
        },
        recognised=["task", "labels", "input.layout", *fields],
        assumed=[],
        ignored=0,
        image=IMAGE,
        classes={name: float(score) for name, score in zip(names, scores, strict=True)},
    )
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
        (HERE / case / name).write_text(text)


def id2label(names):
    return {str(index): name for index, name in enumerate(names)}


def timm():
    names = ["robin", "wren", "finch", "tit", "lark"]
    resized = short_side(PHOTO, 235, Image.BICUBIC)  # floor(224 / 0.95)
    pixels = normalised(middle(resized, 224, round), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    config = {
        "architecture": "resnet18", "num_classes": 5, "label_names": names,
        "pretrained_cfg": {
            "input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.95, "crop_mode": "center",
            "mean": IMAGENET_MEAN, "std": IMAGENET_STD, "num_classes": 5,
        },
    }
    make("timm-config", 224, pixels, names, {"config.json": config}, crop_rule(235, 224, "half-even"), "pillow-bicubic")


def transformers_vit():
    names = ["no", "yes", "perhaps"]
    pixels = normalised(PHOTO.resize((224, 224), Image.BILINEAR), mean=[0.5] * 3, std=[0.5] * 3)
    files = {
        "config.json": {"model_type": "vit", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "ViTImageProcessor", "do_resize": True, "do_rescale": True, "do_normalize": True,
            "resample": 2, "rescale_factor": 1 / 255, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            "size": {"height": 224, "width": 224},
        },
    }
    make("transformers-vit", 224, pixels, names, files, stretch_rule(224), "pillow-bilinear")


def transformers_convnext():
    names = ["oak", "elm", "ash", "yew"]
    resized = short_side(PHOTO, 256, Image.BICUBIC)  # int(224 / 0.875)
    pixels = normalised(middle(resized, 224, int), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    files = {
        "config.json": {"model_type": "convnext", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "feature_extractor_type": "ConvNextFeatureExtractor", "do_resize": True, "do_normalize": True,
            "crop_pct": 0.875, "resample": 3, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD, "size": 224,
        },
    }
    make("transformers-convnext", 224, pixels, names, files, crop_rule(256, 224, "down"), "pillow-bicubic")


def transformers_mobilevit():
    """The processor swaps red and blue, and does not normalise even if its file says so."""
    names = ["rain", "snow", "hail"]
    pixels = normalised(middle(short_side(PHOTO, 288, Image.BILINEAR), 256, int))[:, :, ::-1]
    files = {
        "config.json": {"model_type": "mobilevit", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "MobileViTImageProcessor", "do_resize": True, "do_rescale": True, "resample": 2,
            "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            "do_center_crop": True, "do_flip_channel_order": True, "crop_size": {"height": 256, "width": 256},
            "size": {"shortest_edge": 288},
        },
    }
    resize = crop_rule(288, 256, "down")
    make("transformers-mobilevit", 256, pixels, names, files, resize, "pillow-bilinear", channels="bgr")


def transformers_efficientnet():
    """The processor divides by the standard deviation twice if the classifier is on top."""
    names = ["red", "green", "blue", "grey"]
    pixels = normalised(PHOTO.resize((240, 240), Image.NEAREST), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    pixels = pixels / np.asarray(IMAGENET_STD)
    files = {
        "config.json": {"model_type": "efficientnet", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "EfficientNetImageProcessor", "do_center_crop": False, "do_normalize": True,
            "include_top": True, "resample": 0, "rescale_factor": 1 / 255, "rescale_offset": False,
            "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD, "size": {"height": 240, "width": 240},
        },
    }
    make("transformers-efficientnet", 240, pixels, names, files, stretch_rule(240), "pillow-nearest")


def ultralytics_square():
    """The short side to the size of the input, the middle, and a division by 255."""
    names = ["rust", "moss"]
    pixels = normalised(middle(short_side(PHOTO, 64, Image.BILINEAR), 64, round))
    metadata = {"task": "classify", "names": str(dict(enumerate(names))), "imgsz": "[64, 64]", "stride": "1"}
    resize = crop_rule(64, 64, "half-even")
    make("ultralytics-cls", 64, pixels, names, {}, resize, "pillow-bilinear", metadata, softmax=True)


CASES = [
    timm, transformers_vit, transformers_convnext, transformers_mobilevit, transformers_efficientnet, ultralytics_square
]

if __name__ == "__main__":
    for case in CASES:
        case()
