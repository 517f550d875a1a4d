"""Small classifiers with their exporters' additional files, and the predictions of the exporters' own code.

usage: python make_classifiers.py        (pip install onnx==1.23.2 onnxruntime==1.32.0 pillow==13.0.0 numpy==2.4.6
       opencv-python-headless==5.0.0)
Writes the folders of CASES, as make.py does, with "classes": the probabilities for assets/samples/chelsea.png. The
graphs are random and use single pixels, so that a wrong size, crop, interpolation, channel order, mean or std changes
the result. Images are prepared below with Pillow and NumPy, by each package's published rules.
"""

import json
import pathlib

import cv2
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from make import F32, HERE, U8, Graph, write
from PIL import Image, ImageOps

IMAGE = "assets/samples/chelsea.png"
PHOTO = Image.open(HERE.parents[2] / IMAGE).convert("RGB")
random = np.random.default_rng(11)
LEVEL_FIELDS = ["input.divide_by", "input.mean", "input.std"]
PIXEL_FIELDS = ["input.channels", *LEVEL_FIELDS, "input.resize", "input.interpolation"]
IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def short_side(image, side, method):
    """The rule of torchvision and transformers: the long side is rounded down."""
    width, height = image.size
    if width <= height:
        return image.resize((side, int(side * height / width)), method)
    return image.resize((int(side * width / height), side), method)


def middle(image, side, offset):
    left, top = offset((image.width - side) / 2), offset((image.height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def normalized(image, divide_by=255.0, mean=(0, 0, 0), std=(1, 1, 1)):
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
    values="logits", layout="nchw", scaled_inside=False, is_8_bit=False, preset=None, only_likely=(), image=IMAGE,
    square=None, ports=("pixel_values", "logits"), label_set=None, scope=None,
):
    """`pixels` [side, side, 3] (or 1) are those of the exporter; `names` those of the classes in the predictions. With
    `preset` nothing is written about the pixels, and the name of the preset says how they are prepared. `only_likely`
    are the fields that nothing states. `ports` are the names of input and output; `label_set` is assumed because of them.
    Node names begin with `scope`."""
    side, picture = len(pixels), image
    graph = Graph()
    image = graph.op("Cast", ports[0], to=F32) if is_8_bit else ports[0]
    if layout == "nhwc":
        image = graph.op("Transpose", image, perm=[0, 3, 1, 2])
    if scaled_inside:
        image = graph.op("Sub", graph.op("Mul", image, graph.const(1 / 127.5)), graph.const(1))
    # A classifier with many classes uses few pixels, so that its file is small.
    stride = side // 8 if len(names) < 100 else side // 2
    pooled = graph.op("MaxPool", image, kernel_shape=[1, 1], strides=[stride, stride])
    count = pixels.shape[2]
    features = len(range(0, side, stride)) ** 2 * count
    columns = 1 if values == "second probability" else len(names)
    flat = graph.op("Reshape", pooled, graph.const([1, features], np.int64))
    if preset == "keras-caffe" or scope == "resnet50":
        flat = graph.op("Mul", flat, graph.const(0.02))
    logits = graph.op("MatMul", flat, weights(graph, features, columns))
    activation = {"logits": "Identity", "softmax": "Softmax"}.get(values, "Sigmoid")
    last = None if is_8_bit else [ports[1]]
    scores = graph.op(activation, logits, outputs=last, **({"axis": 1} if values == "softmax" else {}))
    if is_8_bit:
        graph.op("Cast", graph.op("Round", graph.op("Mul", scores, graph.const(255))), to=U8, outputs=[ports[1]])
    element, shape = U8 if is_8_bit else F32, [1, side, side, count] if layout == "nhwc" else [1, count, side, side]
    inputs, outputs = [(ports[0], element, shape)], [(ports[1], element, [1, columns])]
    model = graph.model(inputs, outputs, metadata)
    for number, node in enumerate(model.graph.node if scope else []):
        node.name = f"{scope}/layer_{number}/{node.op_type}"
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    tensor = (pixels if layout == "nhwc" else pixels.transpose(2, 0, 1))[None]
    found = session.run(None, {ports[0]: tensor.astype(np.uint8 if is_8_bit else np.float32)})[0][0]
    found = found.astype(np.float64) / (255 if is_8_bit else 1)
    multi_label = "multi_label_classification" in json.dumps(dict(files))
    if values == "logits":
        found = 1 / (1 + np.exp(-found)) if multi_label else np.exp(found - found.max()) / np.exp(found - found.max()).sum()
    if values == "second probability":
        found = np.append(1 - found, found)
    # More than are predicted, because some of many classes are equal in 8 bits.
    best = np.argsort(-found, kind="stable")[:20]
    pixel_fields = [field for field in PIXEL_FIELDS if not is_8_bit or field not in LEVEL_FIELDS]
    has_names = bool(files) or metadata is not None
    known = {"channels": channels, "resize": resize}
    if interpolation != "pillow-bilinear":
        known["interpolation"] = interpolation
    if square:
        known["square"] = square
    # Numbers without names could be a regression, and only transformers records that a softmax follows.
    assumed = {
        "task": not has_names and values != "softmax",
        "output.classification.values": values == "logits" and "model_type" not in json.dumps(dict(files)),
    }
    output_fields = {basis: [field for field in assumed if assumed[field] == basis] for basis in (False, True)}
    likely_fields = pixel_fields if preset else only_likely
    words = {"logits": "sigmoid-logits" if multi_label else "logits", "second probability": "second-probability"}
    write(
        case,
        model,
        card={
            "task": "classification",
            "labels": "labels.txt" if has_names else label_set,
            "input": {"layout": layout, **({} if preset else known)},
            "output": {"classification": {"values": words.get(values, "probabilities")}},
        },
        recognized=[
            *output_fields[False], *(["labels"] if has_names else []), "input.layout",
            *(field for field in pixel_fields if field not in likely_fields),
        ],
        assumed=[*output_fields[True], *([] if has_names else ["labels"]), *likely_fields],
        ignored=0,
        image=picture,
        classes={names[index]: float(found[index]) for index in sorted(best)},
        **({"preset": preset} if preset else {}),
        **({"names_decide": True} if label_set or scope or ports[0] == "input0" else {}),
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
    pixels = normalized(middle(resized, 224, round), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    config = {
        "architecture": "resnet18", "num_classes": 5, "label_names": names,
        "pretrained_cfg": {
            "input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.95, "crop_mode": "center",
            "mean": IMAGENET_MEAN, "std": IMAGENET_STD, "num_classes": 5,
        },
    }
    make("timm-config", pixels, names, {"config.json": config}, crop_rule(235, 224, "half-even"), "pillow-bicubic")


def timm_squash():
    """Each side is resized to that of the input divided by the share, then the center is cropped."""
    names = ["anvil", "bell", "crank"]
    pixels = normalized(middle(PHOTO.resize((107, 107), Image.BICUBIC), 96, round), mean=[0.5] * 3, std=[0.5] * 3)
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
    """Both sides are resized without keeping the aspect ratio, then the center is cropped."""
    names = ["copper", "tin", "zinc"]
    pixels = normalized(middle(PHOTO.resize((256, 256), Image.BICUBIC), 224, int), mean=[0.5] * 3, std=[0.5] * 3)
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
    pixels = normalized(PHOTO.resize((224, 224), Image.BILINEAR), mean=[0.5] * 3, std=[0.5] * 3)
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
    pixels = normalized(PHOTO.resize((224, 224), Image.BILINEAR), mean=[0.5] * 3, std=[0.5] * 3)
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
    pixels = normalized(middle(resized, 224, int), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    files = {
        "config.json": {"model_type": "convnext", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "feature_extractor_type": "ConvNextFeatureExtractor", "do_resize": True, "do_normalize": True,
            "crop_pct": 0.875, "resample": 3, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD, "size": 224,
        },
    }
    make("transformers-convnext", pixels, names, files, crop_rule(256, 224, "down"), "pillow-bicubic")


def transformers_mobilevit():
    """The processor swaps red and blue, and never normalizes, even if its file requires it."""
    names = ["rain", "snow", "hail"]
    pixels = normalized(middle(short_side(PHOTO, 288, Image.BILINEAR), 256, int))[:, :, ::-1]
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


def transformers_levit():
    """The short side is resized to 256/224 of the size in the file."""
    names = ["iron", "lead"]
    pixels = normalized(middle(short_side(PHOTO, 256, Image.BICUBIC), 224, int), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    files = {
        "config.json": {"model_type": "levit", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "LevitImageProcessorFast", "do_resize": True, "do_rescale": True, "resample": 3,
            "do_normalize": True, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD, "do_center_crop": True,
            "crop_size": {"height": 224, "width": 224}, "size": {"shortest_edge": 224},
        },
    }
    make("transformers-levit", pixels, names, files, crop_rule(256, 224, "down"), "pillow-bicubic")


def transformers_poolformer():
    """The short side is resized to the size in the file divided by its crop_pct."""
    names = ["salt", "sand", "silt"]
    pixels = normalized(middle(short_side(PHOTO, 235, Image.BICUBIC), 224, int), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    files = {
        "config.json": {"model_type": "poolformer", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "PoolFormerImageProcessor", "do_resize": True, "do_rescale": True, "resample": 3,
            "do_normalize": True, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD, "do_center_crop": True,
            "crop_size": {"height": 224, "width": 224}, "crop_pct": 0.95, "size": {"shortest_edge": 224},
        },
    }  # int(224 / 0.95)
    make("transformers-poolformer", pixels, names, files, crop_rule(235, 224, "down"), "pillow-bicubic")


def transformers_unknown():
    """The values of a processor with unknown rules are only assumed."""
    names = ["ash", "coal"]
    pixels = normalized(PHOTO.resize((96, 96), Image.BILINEAR), mean=[0.5] * 3, std=[0.5] * 3)
    files = {
        "config.json": {"model_type": "vit", "id2label": id2label(names)},
        "preprocessor_config.json": {
            "image_processor_type": "HouseImageProcessor", "resample": 2, "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3, "size": {"height": 96, "width": 96},
        },
    }
    make("transformers-unknown", pixels, names, files, stretch_rule(96), only_likely=PIXEL_FIELDS)


def onnx_image_metadata():
    """ONNX's own metadata for images states the order of the channels and the range, but no resize."""
    names = ["hill", "lake"]
    resized = middle(short_side(PHOTO, 256, Image.BILINEAR), 224, round)
    pixels = np.asarray(resized, np.float64)[..., ::-1] / 127.5 - 1
    metadata = {
        "Image.BitmapPixelFormat": "Bgr8", "Image.NominalPixelRange": "Normalized_1_1", "Image.ColorSpaceGamma": "SRGB"
    }
    make(
        "onnx-image-metadata", pixels, names, {"labels.txt": "hill\nlake\n"}, crop_rule(256, 224, "half-even"),
        channels="bgr", metadata=metadata, only_likely=["input.resize", "input.interpolation"],
    )


def teachable_machine():
    """The label file numbers the names; images are resized with Lanczos and go from -1 to 1."""
    names = ["Rock", "Paper", "Scissors"]
    pixels = np.asarray(ImageOps.fit(PHOTO, (224, 224), Image.LANCZOS), np.float64) / 127.5 - 1
    labels = "".join(f"{number} {name}\n" for number, name in enumerate(names))
    make(
        "teachable-machine", pixels, names, {"labels.txt": labels}, stretch_rule(224), "pillow-lanczos", layout="nhwc",
        values="softmax", square="fit", only_likely=[*PIXEL_FIELDS, "input.square"],
    )


def transformers_efficientnet():
    """The processor divides by the standard deviation twice if the classifier is on top."""
    names = ["red", "green", "blue", "gray"]
    pixels = normalized(PHOTO.resize((240, 240), Image.NEAREST), mean=IMAGENET_MEAN, std=IMAGENET_STD)
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
    pixels = normalized(middle(short_side(PHOTO, 64, Image.BILINEAR), 64, round))
    metadata = {"task": "classify", "names": str(dict(enumerate(names))), "imgsz": "[64, 64]", "stride": "1"}
    resize = crop_rule(64, 64, "half-even")
    make("ultralytics-cls", pixels, names, {}, resize, metadata=metadata, values="softmax")


# No file describes the pixels of these: a preset is chosen.

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
    pixels = normalized(PHOTO.resize((96, 96), Image.NEAREST), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    make("keras-torch", pixels, NUMBERS, layout="nhwc", values="softmax", preset="keras-torch")


def keras_scaled_inside():
    pixels = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64)
    make("keras-scaled-inside", pixels, NUMBERS, layout="nhwc", values="softmax", scaled_inside=True, preset="in-graph")


def sigmoids():
    """Several classes apply to one image: the scores do not sum to 1."""
    pixels = normalized(PHOTO.resize((96, 96), Image.BILINEAR))
    make("sigmoids", pixels, [*NUMBERS, "class 4"], values="sigmoid", preset="unit")


def tflite():
    """Whole numbers in and out; the background is one of the names in the files of TensorFlow and of iNaturalist."""
    pixels = np.asarray(PHOTO.resize((96, 96), Image.BILINEAR))
    options = {"layout": "nhwc", "values": "softmax", "scaled_inside": True, "is_8_bit": True}
    options["preset"] = "in-graph-bilinear"
    names = ["background", *(f"thing {index}" for index in range(1000))]
    make("tflite", pixels, names, {"labels.txt": "\n".join(names) + "\n"}, **options)
    names = [*(f"bird {index}" for index in range(964)), "background"]
    make("tflite-inaturalist", pixels, names, {"labels.txt": "\n".join(names) + "\n"}, **options)


def gray():
    """One channel, as in MNIST."""
    names = [f"digit {number}" for number in range(10)]
    pixels = np.asarray(PHOTO.convert("L").resize((28, 28), Image.BILINEAR), np.float64)[..., None] / 255
    labels = {"labels.txt": "".join(f"{name}\n" for name in names)}
    options = {"channels": "gray", "only_likely": [field for field in PIXEL_FIELDS if field != "input.channels"]}
    make("gray-planes", pixels, names, labels, stretch_rule(28), **options)
    pixels = np.asarray(PHOTO.convert("L").resize((28, 28), Image.NEAREST), np.float64)[..., None] / 255
    make(
        "gray-last", pixels, names, labels, stretch_rule(28), "pillow-nearest", layout="nhwc", values="softmax", **options
    )


def one_probability():
    """One sigmoid, of the second of two classes."""
    pixels = np.asarray(PHOTO.resize((64, 64), Image.NEAREST), np.float64)
    labels = {"labels.txt": "landscape\nportrait\n"}
    make(
        "one-probability", pixels, ["landscape", "portrait"], labels, stretch_rule(64), "pillow-nearest",
        values="second probability", only_likely=PIXEL_FIELDS, layout="nhwc", scaled_inside=True,
    )


def custom_vision():
    """The best class as a string, and a map from class name to score, in the order of the names."""
    names = ["wolf", "cat", "dog"]
    graph = Graph()
    pooled = graph.op("MaxPool", "data", kernel_shape=[1, 1], strides=[28, 28])
    flat = graph.op("Reshape", pooled, graph.const([-1, 192], np.int64))
    logits = graph.op("MatMul", flat, graph.const(random.normal(size=(192, 3)) / 1000))
    scores = graph.op("Softmax", logits, axis=1)
    best = graph.op("ArgMax", scores, axis=1)
    options = {"domain": "ai.onnx.ml"}
    graph.op("LabelEncoder", best, outputs=["classLabel"], keys_int64s=[0, 1, 2], values_strings=names, **options)
    graph.op("ZipMap", scores, outputs=["loss"], classlabels_strings=names, **options)
    metadata = {
        "Image.BitmapPixelFormat": "Bgr8", "Image.NominalPixelRange": "NominalRange_0_255",
        "Image.ColorSpaceGamma": "SRGB",
    }
    ports = [[("data", F32, ["None", 3, 224, 224])], [("classLabel", TensorProto.STRING, ["None", 1])]]
    model = graph.model(*ports, metadata, extra_opsets=[helper.make_opsetid("ai.onnx.ml", 2)])
    table = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(F32, []))
    model.graph.output.append(helper.make_value_info("loss", helper.make_sequence_type_proto(table)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    # Its sample code resizes with Pillow's default, which is bicubic, without keeping the aspect ratio.
    pixels = np.asarray(PHOTO.resize((224, 224), Image.BICUBIC), np.float32)[..., ::-1]
    found = session.run(["loss"], {"data": pixels.transpose(2, 0, 1)[None]})[0][0]
    written = ["input.channels", *LEVEL_FIELDS]
    write(
        "custom-vision",
        model,
        card={
            "task": "classification",
            "labels": "labels.txt",
            "input": {
                "channels": "bgr", "divide_by": 1.0, "batches": True, "resize": stretch_rule(224),
                "interpolation": "pillow-bicubic",
            },
            "output": {"classification": {"values": "probabilities"}},
        },
        recognized=["task", "labels", "input.layout", *written],
        assumed=[field for field in PIXEL_FIELDS if field not in written],
        ignored=1,
        image=IMAGE,
        classes={name: float(found[name]) for name in names},
    )


def keras_named():
    """Keras' loaders stretch images, also those of a binary classifier in PyTorch's layout."""
    pixels = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64)
    labels = {"labels.txt": "dune\nreef\nfen\n"}
    options = {"only_likely": PIXEL_FIELDS, "scaled_inside": True}
    make(
        "keras-named", pixels, ["dune", "reef", "fen"], labels, stretch_rule(96), "pillow-nearest", values="softmax",
        layout="nhwc", **options,
    )
    pixels = normalized(PHOTO.resize((96, 96), Image.NEAREST), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    make(
        "one-probability-planes", pixels, ["dune", "reef"], {"labels.txt": "dune\nreef\n"}, stretch_rule(96),
        "pillow-nearest", values="second probability", only_likely=PIXEL_FIELDS,
    )


def wd_tagger():
    """Tags that do not exclude one another, named in `selected_tags.csv`. BGR in 0..255 with channels last, in the middle
    of a white square. The repositories also hold timm's configuration of the PyTorch weights, which is another one."""
    names = ["1girl", ",_", 'say_"hi"', "sky"]
    side = max(PHOTO.size)
    square = Image.new("RGB", (side, side), "white")
    square.paste(PHOTO, ((side - PHOTO.width) // 2, (side - PHOTO.height) // 2))
    pixels = np.asarray(square.resize((96, 96), Image.BICUBIC), np.float64)[..., ::-1]
    rows = ["tag_id,name,category,count", "9999999,1girl,9,807858", '1,",_",0,900', '2,"say_""hi""",0,800', "3,sky,0,700"]
    config = {
        "architecture": "vit_base_patch16_224", "num_classes": 4,
        "pretrained_cfg": {
            "input_size": [3, 96, 96], "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "center",
            "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "num_classes": 4,
        },
    }
    tags = {"selected_tags.csv": "\n".join(rows) + "\n"}
    for case, files in (("wd-tagger", tags), ("wd-tagger-timm", {**tags, "config.json": config})):
        make(
            case, pixels, names, files, stretch_rule(96), "pillow-bicubic", channels="bgr", values="sigmoid",
            layout="nhwc", scaled_inside=True, square="pad-white", only_likely=[*PIXEL_FIELDS, "input.square"],
        )


def yolov5_classifier():
    """The metadata is that of a detector. The central square is cut out, then OpenCV resizes it (`classify_transforms`
    of YOLOv5 7.0)."""
    names = ["brick", "tile", "slate"]
    side = min(PHOTO.size)
    left, top = (PHOTO.width - side) // 2, (PHOTO.height - side) // 2
    square = np.asarray(PHOTO)[top : top + side, left : left + side]
    resized = cv2.resize(square, (96, 96), interpolation=cv2.INTER_LINEAR)
    pixels = normalized(resized, mean=IMAGENET_MEAN, std=IMAGENET_STD)
    metadata = {"stride": "32", "names": str(names)}
    make(
        "yolov5-cls", pixels, names, {}, stretch_rule(96), "opencv-linear", metadata=metadata, square="crop",
        only_likely=[*PIXEL_FIELDS, "input.square"],
    )


def paddle_classifier():
    """PaddleClas' `inference.yml`, with the names, a short side that rounds the long one, and OpenCV."""
    names = ["oak", "elm", "yew"]
    scale = 110 / min(PHOTO.size)
    width, height = round(PHOTO.width * scale), round(PHOTO.height * scale)
    resized = cv2.resize(np.asarray(PHOTO), (width, height), interpolation=cv2.INTER_LINEAR)
    left, top = (width - 96) // 2, (height - 96) // 2
    pixels = normalized(resized[top : top + 96, left : left + 96], mean=IMAGENET_MEAN, std=IMAGENET_STD)
    config = f"""Global:
  model_name: PP-LCNet_x1_0
PreProcess:
  transform_ops:
  - ResizeImage:
      resize_short: 110
  - CropImage:
      size: 96
  - NormalizeImage:
      channel_num: 3
      mean: {IMAGENET_MEAN}
      order: ''
      scale: {1 / 255!r}
      std: {IMAGENET_STD}
  - ToCHWImage: null
PostProcess:
  Topk:
    topk: 5
    label_list: [{", ".join(names)}]
"""
    resize = crop_rule(110, 96, "down")
    resize["short-side-crop"]["long_side"] = "half-even"
    make("paddle-clas", pixels, names, {"inference.yml": config}, resize, "opencv-linear", values="softmax")


def lobe():
    """Lobe's `signature.json` next to its ONNX file. Its `onnx_example.py` crops the central square with fractional
    bounds, which Pillow rounds, and resizes it by Pillow's default."""
    names = ["kettle", "cup"]
    (width, height), side = PHOTO.size, min(PHOTO.size)
    square = PHOTO.crop(((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2))
    signature = {
        "doc_name": "Kitchen", "format": "onnx", "filename": "model.onnx", "classes": {"Label": names},
        "inputs": {"Image": {"dtype": "float32", "shape": [None, 96, 96, 3], "name": "pixel_values"}},
        "outputs": {"Confidences": {"dtype": "float32", "shape": [None, 2], "name": "logits"}},
    }
    make(
        "lobe", normalized(square.resize((96, 96))), names, {"signature.json": signature}, stretch_rule(96),
        "pillow-bicubic", values="softmax", layout="nhwc", square="crop-half-even",
    )


def named_otherwise():
    """AutoML's `dict.txt` next to a TFLite model, which takes stretched images; Keras' usual `class_names.txt`."""
    names = ["dune", "reef", "fen"]
    pixels = np.asarray(PHOTO.resize((96, 96), Image.BILINEAR))
    fields = [field for field in PIXEL_FIELDS if field not in LEVEL_FIELDS]
    make(
        "automl-edge", pixels, names, {"dict.txt": "\n".join(names)}, stretch_rule(96), values="softmax",
        layout="nhwc", scaled_inside=True, is_8_bit=True, only_likely=fields,
    )
    pixels = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64)
    make(
        "keras-class-names", pixels, names, {"class_names.txt": "\n".join(names)}, stretch_rule(96), "pillow-nearest",
        values="softmax", layout="nhwc", scaled_inside=True, only_likely=PIXEL_FIELDS,
    )


def paddle_multi_label():
    """PaddleX' multi-label classifier: the names are in another step of the post-processing."""
    names = ["oak", "elm", "yew"]
    pixels = normalized(cv2.resize(np.asarray(PHOTO), (96, 96), interpolation=cv2.INTER_LINEAR))
    config = f"""PreProcess:
  transform_ops:
  - ResizeImage:
      size: [96, 96]
  - NormalizeImage:
      mean: [0.0, 0.0, 0.0]
      scale: {1 / 255!r}
      std: [1.0, 1.0, 1.0]
  - ToCHWImage: null
PostProcess:
  MultiLabelThreshOutput:
    threshold: 0.5
    label_list: [{", ".join(names)}]
"""
    make(
        "paddle-multi-label", pixels, names, {"inference.yml": config}, stretch_rule(96), "opencv-linear",
        values="sigmoid",
    )


def model_zoo():
    """EfficientNet-Lite4 and FER+ of the ONNX Model Zoo, by the code in its READMEs (FER+'s leaves the resizing to the
    reader). Nothing but the names of their tensors tells what they are."""
    height, width = np.asarray(PHOTO).shape[:2]
    short = int(100.0 * 224 / 87.5)
    size = (short, int(short * height / width)) if height > width else (int(short * width / height), short)
    resized = cv2.resize(np.asarray(PHOTO), size, interpolation=cv2.INTER_LINEAR)
    left, top = (int((side - 224) / 2) for side in size)
    pixels = (resized[top : top + 224, left : left + 224].astype(np.float64) - 127) / 128
    lines = (HERE.parents[2] / "models/labels/imagenet.txt").read_text().splitlines()
    make(
        "zoo-efficientnet-lite4", pixels, [line.split("\t")[1] for line in lines], resize=crop_rule(short, 224, "down"),
        interpolation="opencv-linear", values="softmax", layout="nhwc", only_likely=PIXEL_FIELDS,
        ports=("images:0", "Softmax:0"), label_set="imagenet",
    )
    names = "neutral happiness surprise sadness anger disgust fear contempt".split()
    pixels = np.asarray(PHOTO.convert("L").resize((64, 64), Image.BILINEAR), np.float64)[..., None]
    make(
        "zoo-ferplus", pixels, names, resize=stretch_rule(64), channels="gray", scaled_inside=True,
        only_likely=PIXEL_FIELDS[1:], ports=("Input3", "Plus692_Output_0"), label_set="labels.txt",
    )


def keras_applications():
    """tf2onnx keeps the names of Keras' models and layers (tf2onnx 1.17, Keras 3.15): `preprocess_input` is outside."""
    options = {"layout": "nhwc", "values": "softmax", "only_likely": PIXEL_FIELDS}
    nearest = np.asarray(PHOTO.resize((96, 96), Image.NEAREST), np.float64)
    make(
        "keras-mobilenetv2", nearest / 127.5 - 1, NUMBERS, (), stretch_rule(96), "pillow-nearest",
        scope="StatefulPartitionedCall/mobilenetv2_1.00_96_1", **options,
    )
    caffe = nearest[..., ::-1] - [103.939, 116.779, 123.68]
    make(
        "keras-resnet50", caffe, NUMBERS, (), stretch_rule(96), "pillow-nearest", channels="bgr", scope="resnet50",
        **options,
    )
    torch = normalized(PHOTO.resize((96, 96), Image.NEAREST), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    make(
        "keras-densenet121", torch, NUMBERS, (), stretch_rule(96), "pillow-nearest", scope="densenet121", **options
    )
    # A model around it scales pixels inside.
    make(
        "keras-mobilenetv2-nested", nearest, NUMBERS, (), stretch_rule(96), "pillow-nearest", scaled_inside=True,
        scope="functional_1/mobilenetv2_1.00_96_1", **options,
    )


def timm_export():
    """timm's `onnx_export` writes no configuration; the default of `resolve_data_config` is bicubic."""
    pixels = normalized(middle(short_side(PHOTO, 256, Image.BICUBIC), 224, round), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    make(
        "timm-onnx-export", pixels, NUMBERS, (), crop_rule(256, 224, "half-even"), "pillow-bicubic",
        only_likely=PIXEL_FIELDS, ports=("input0", "output0"),
    )


CASES = [
    timm, transformers_vit, transformers_convnext, transformers_mobilevit, transformers_efficientnet,
    ultralytics_square, timm_squash, transformers_deit, transformers_multi_label, keras_tf, keras_caffe, keras_torch,
    keras_scaled_inside, tflite, sigmoids, transformers_levit, transformers_poolformer, transformers_unknown,
    onnx_image_metadata, teachable_machine, gray, one_probability, custom_vision, keras_named,
    wd_tagger, yolov5_classifier, paddle_classifier, lobe, named_otherwise, paddle_multi_label,
    model_zoo, keras_applications, timm_export,
]

if __name__ == "__main__":
    for case in CASES:
        case()
