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
from make import F32, HERE, U8, Graph, write
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


def stretch_rule(side, crop=None):
    """`crop` is a side and a rounding."""
    middle = {"crop": {"width": crop[0], "height": crop[0], "offset": crop[1]}} if crop else {}
    return {"stretch": {"width": side, "height": side, **middle}}


def make(
    case, pixels, names, files=(), resize=None, interpolation="pillow-bilinear", channels="rgb", metadata=None,
    values="logits", layout="nchw", scaled_inside=False, is_8_bit=False, preset=None,
):
    """`pixels` [side, side, 3] are those of the exporter; `names` those of the classes in the predictions. With
    `preset` nothing is written about the pixels, and the name of the preset says how they are prepared."""
    side = len(pixels)
    graph = Graph()
    image = graph.op("Cast", "pixel_values", to=F32) if is_8_bit else "pixel_values"
    if layout == "nhwc":
        image = graph.op("Transpose", image, perm=[0, 3, 1, 2])
    if scaled_inside:
        image = graph.op("Sub", graph.op("Mul", image, graph.const(1 / 127.5)), graph.const(1))
    # A classifier with many classes looks at few pixels, so that its file is small.
    stride = side // 8 if len(names) < 100 else side // 2
    pooled = graph.op("MaxPool", image, kernel_shape=[1, 1], strides=[stride, stride])
    features = len(range(0, side, stride)) ** 2 * 3
    flat = graph.op("Reshape", pooled, graph.const([1, features], np.int64))
    if preset == "keras-caffe":
        flat = graph.op("Mul", flat, graph.const(0.02))
    logits = graph.op("MatMul", flat, weights(graph, features, len(names)))
    activation = {"logits": "Identity", "softmax": "Softmax", "sigmoid": "Sigmoid"}[values]
    last = None if is_8_bit else ["logits"]
    scores = graph.op(activation, logits, outputs=last, **({"axis": 1} if values == "softmax" else {}))
    if is_8_bit:
        graph.op("Cast", graph.op("Round", graph.op("Mul", scores, graph.const(255))), to=U8, outputs=["logits"])
    element, shape = U8 if is_8_bit else F32, [1, side, side, 3] if layout == "nhwc" else [1, 3, side, side]
    inputs, outputs = [("pixel_values", element, shape)], [("logits", element, [1, len(names)])]
    model = graph.model(inputs, outputs, metadata)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    tensor = (pixels if layout == "nhwc" else pixels.transpose(2, 0, 1))[None]
    found = session.run(None, {"pixel_values": tensor.astype(np.uint8 if is_8_bit else np.float32)})[0][0]
    found = found.astype(np.float64) / (255 if is_8_bit else 1)
    multi_label = "multi_label_classification" in json.dumps(dict(files))
    if values == "logits":
        found = 1 / (1 + np.exp(-found)) if multi_label else np.exp(found - found.max()) / np.exp(found - found.max()).sum()
    # More than are predicted, because some of many classes are equal in 8 bits.
    best = np.argsort(-found, kind="stable")[:20]
    pixel_fields = ["input.channels", "input.divide_by", "input.mean", "input.std"]
    pixel_fields = [*(pixel_fields[:1] if is_8_bit else pixel_fields), "input.resize", "input.interpolation"]
    has_names = bool(files) or metadata is not None
    known = {"channels": channels, "resize": resize}
    if interpolation != "pillow-bilinear":
        known["interpolation"] = interpolation
    activation = {"logits": "sigmoid-logits" if multi_label else "logits"}.get(values, "probabilities")
    write(
        case,
        model,
        card={
            "task": "classification",
            "labels": "labels.txt" if has_names else None,
            "input": {"layout": layout, **({} if preset else known)},
            "output": {"classification": {"values": activation}},
        },
        recognised=["task", *(["labels"] if has_names else []), "input.layout", *([] if preset else pixel_fields)],
        assumed=[*([] if has_names else ["labels"]), *(pixel_fields if preset else [])],
        ignored=0,
        image=IMAGE,
        classes={names[index]: float(found[index]) for index in sorted(best)},
        **({"preset": preset} if preset else {}),
    )
    for name, content in dict(files).items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
        (HERE / case / name).write_text(text)


def weights(graph, features, classes):
    """Random ones; those for many classes have 8 bits."""
    if classes < 100:
        return graph.const(random.normal(size=(features, classes)) * 0.2)
    levels = graph.const(random.normal(size=(features, classes)).clip(-4, 4) * 30, np.int8)
    return graph.op("Mul", graph.op("Cast", levels, to=F32), graph.const(1 / 12))


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
    make("timm-config", pixels, names, {"config.json": config}, crop_rule(235, 224, "half-even"), "pillow-bicubic")


def timm_squash():
    """Each side is resized to that of the input divided by the share, then the middle is taken."""
    names = ["anvil", "bell", "crank"]
    pixels = normalised(middle(PHOTO.resize((107, 107), Image.BICUBIC), 96, round), mean=[0.5] * 3, std=[0.5] * 3)
    config = {
        "architecture": "vit_tiny", "num_classes": 3, "label_names": names,
        "pretrained_cfg": {
            "input_size": [3, 96, 96], "interpolation": "bicubic", "crop_pct": 0.89, "crop_mode": "squash",
            "mean": [0.5] * 3, "std": [0.5] * 3, "num_classes": 3,
        },
    }  # floor(96 / 0.89) is 107, and half of the rest of 11 is rounded up to 6.
    rule = stretch_rule(107, (96, "half-even"))
    make("timm-squash", pixels, names, {"config.json": config}, rule, "pillow-bicubic")


def transformers_deit():
    """Both sides are resized, whatever the aspect ratio, then the middle is taken."""
    names = ["copper", "tin", "zinc"]
    pixels = normalised(middle(PHOTO.resize((256, 256), Image.BICUBIC), 224, int), mean=[0.5] * 3, std=[0.5] * 3)
    files = {
        "config.json": {"model_type": "deit", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "DeiTImageProcessor", "do_resize": True, "do_rescale": True, "do_normalize": True,
            "do_center_crop": True, "crop_size": {"height": 224, "width": 224}, "resample": 3,
            "rescale_factor": 1 / 255, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            "size": {"height": 256, "width": 256},
        },
    }
    make("transformers-deit", pixels, names, files, stretch_rule(256, (224, "down")), "pillow-bicubic")


def transformers_multi_label():
    """A sigmoid for each class follows."""
    names = ["fog", "sun", "night"]
    pixels = normalised(PHOTO.resize((224, 224), Image.BILINEAR), mean=[0.5] * 3, std=[0.5] * 3)
    files = {
        "config.json": {
            "model_type": "vit", "id2label": id2label(names), "problem_type": "multi_label_classification"
        },
        "preprocessor_config.json": {
            "image_processor_type": "ViTImageProcessor", "resample": 2, "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3, "size": {"height": 224, "width": 224},
        },
    }
    make("transformers-multi-label", pixels, names, files, stretch_rule(224))


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
    make("transformers-vit", pixels, names, files, stretch_rule(224), "pillow-bilinear")


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
    make("transformers-convnext", pixels, names, files, crop_rule(256, 224, "down"), "pillow-bicubic")


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
    make("transformers-mobilevit", pixels, names, files, resize, "pillow-bilinear", channels="bgr")


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
    make("transformers-efficientnet", pixels, names, files, stretch_rule(240), "pillow-nearest")


def ultralytics_square():
    """The short side to the size of the input, the middle, and a division by 255."""
    names = ["rust", "moss"]
    pixels = normalised(middle(short_side(PHOTO, 64, Image.BILINEAR), 64, round))
    metadata = {"task": "classify", "names": str(dict(enumerate(names))), "imgsz": "[64, 64]", "stride": "1"}
    resize = crop_rule(64, 64, "half-even")
    make("ultralytics-cls", pixels, names, {}, resize, metadata=metadata, values="softmax")


# Nothing is written about the pixels of these: a preset is chosen.

NUMBERS = [f"class {index}" for index in range(4)]


def keras_tf():
    pixels = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64) / 127.5 - 1
    make("keras-tf", pixels, NUMBERS, layout="nhwc", values="softmax", preset="keras-tf")
    pixels = np.asarray(PHOTO.resize((96, 96), Image.BILINEAR), np.float64) / 127.5 - 1
    make("keras-tf-bilinear", pixels, NUMBERS, layout="nhwc", values="softmax", preset="keras-tf-bilinear")


def keras_caffe():
    pixels = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64)[..., ::-1] - [103.939, 116.779, 123.68]
    make("keras-caffe", pixels, NUMBERS, layout="nhwc", values="softmax", preset="keras-caffe")


def keras_torch():
    pixels = normalised(PHOTO.resize((96, 96), Image.NEAREST), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    make("keras-torch", pixels, NUMBERS, layout="nhwc", values="softmax", preset="keras-torch")


def keras_scaled_inside():
    pixels = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64)
    make("keras-scaled-inside", pixels, NUMBERS, layout="nhwc", values="softmax", scaled_inside=True, preset="in-graph")


def sigmoids():
    """Several classes at once: the scores do not sum to 1."""
    pixels = normalised(PHOTO.resize((96, 96), Image.BILINEAR))
    make("sigmoids", pixels, NUMBERS, values="sigmoid", preset="unit")


def tflite():
    """Whole numbers in and out; the background is one of the names in the files of TensorFlow and of iNaturalist."""
    pixels = np.asarray(PHOTO.resize((96, 96), Image.BILINEAR))
    options = {"layout": "nhwc", "values": "softmax", "scaled_inside": True, "is_8_bit": True}
    options["preset"] = "in-graph-bilinear"
    names = ["background", *(f"thing {index}" for index in range(1000))]
    make("tflite", pixels, names, {"labels.txt": "\n".join(names) + "\n"}, **options)
    names = [*(f"bird {index}" for index in range(964)), "background"]
    make("tflite-inaturalist", pixels, names, {"labels.txt": "\n".join(names) + "\n"}, **options)


CASES = [
    timm, transformers_vit, transformers_convnext, transformers_mobilevit, transformers_efficientnet,
    ultralytics_square, timm_squash, transformers_deit, transformers_multi_label, keras_tf, keras_caffe, keras_torch,
    keras_scaled_inside, sigmoids, tflite,
]

if __name__ == "__main__":
    for case in CASES:
        case()
