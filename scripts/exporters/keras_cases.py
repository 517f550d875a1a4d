"""Keras applications through tf2onnx. Images are loaded like in Keras' documentation, and with bilinear resizing like in
its datasets."""

import functools
import shutil
import subprocess
import sys

from .common import Case, onnx_session, stretch


def make(folder, images, name, module, resize):
    import importlib

    import keras
    import numpy

    keras.utils.set_random_seed(0)
    build = getattr(keras.applications, name)
    preprocess = importlib.import_module(f"keras.applications.{module}").preprocess_input
    model = build(weights=None)
    size = model.input_shape[1:3]
    loaded = [keras.utils.load_img(image, target_size=size, interpolation=resize) for image in images]
    batch = numpy.stack([preprocess(keras.utils.img_to_array(image)) for image in loaded])
    settle(model, batch)
    spread(model, batch)
    # tf2onnx supports only Keras 2 models.
    model.export(folder / "saved", verbose=False)
    command = ["--saved-model", folder / "saved", "--output", folder / "model.onnx", "--opset", "15"]
    subprocess.run([sys.executable, "-m", "tf2onnx.convert", *command], check=True)
    shutil.rmtree(folder / "saved")
    session = onnx_session(folder)
    predictions = {}
    for at, image in enumerate(images):
        scores = session.run(None, {session.get_inputs()[0].name: batch[at : at + 1]})[0][0]
        predictions[image.name] = {"classes": {index: float(score) for index, score in enumerate(scores)}}
    return predictions


def settle(model, batch):
    """Statistics of the batch normalizations from one pass."""
    import keras

    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    for norm in norms:
        norm.momentum = 0.0
    model(batch, training=True)
    for norm in norms:
        norm.momentum = 0.99


def spread(model, batch):
    """Logits with a deviation of 2 over the images."""
    import keras
    import numpy

    last = model.layers[-1]
    before = keras.Model(model.input, last.input)(batch, training=False).numpy()
    kernel, bias = last.get_weights()
    logits = before @ kernel
    factor = 2.0 / numpy.maximum(logits.std(0), 1e-6)
    last.set_weights([kernel * factor, (bias - logits.mean(0)) * factor])


def case(title, family, name, module, resize="bilinear", settings=()):
    settings = (stretch(224, 224), f"input.interpolation=pillow-{resize}", *settings)
    return Case(f"keras-{title}", f"Keras {family}", "keras", "keras",
                functools.partial(make, name=name, module=module, resize=resize), settings=settings)


TF = ("input.divide_by=127.5", "input.mean=[1, 1, 1]", "input.std=[1, 1, 1]")
CAFFE = ("input.channels=bgr", "input.divide_by=1", "input.mean=[103.939, 116.779, 123.68]", "input.std=[1, 1, 1]")
TORCH = ("input.divide_by=255", "input.mean=[0.485, 0.456, 0.406]", "input.std=[0.229, 0.224, 0.225]")
INSIDE = ("input.divide_by=1", "input.mean=[0, 0, 0]", "input.std=[1, 1, 1]")
CASES = [
    case("mobilenet_v2", "MobileNetV2 (tf)", "MobileNetV2", "mobilenet_v2", settings=TF),
    case("mobilenet_v2-nearest", "MobileNetV2 (tf), nearest", "MobileNetV2", "mobilenet_v2", "nearest", settings=TF),
    case("resnet50", "ResNet50 (caffe)", "ResNet50", "resnet", settings=CAFFE),
    case("densenet121", "DenseNet121 (torch)", "DenseNet121", "densenet", settings=TORCH),
    case("efficientnet_b0", "EfficientNetB0 (scaling inside)", "EfficientNetB0", "efficientnet", settings=INSIDE),
]
