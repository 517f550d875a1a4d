"""Results of a small classifier for images in folders named after classes, with common ways to prepare them.

usage: python make.py        (pip install onnxruntime==1.32.0 pillow==13.0.0 numpy==2.4.6)
Writes expected.json: the folder of each image, and the fraction of images whose best class is their folder's name for
some presets, and the best class of chelsea.png; and, for a model with ImageNet's classes, the WordNet id of the best
class of chelsea.png. Images are prepared here with Pillow and NumPy.
"""

import json
import pathlib

import numpy as np
import onnxruntime
from PIL import Image

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
CASE = "keras-cifar10"
FOLDERS = {"astronaut.png": "automobile", "chelsea.png": "automobile", "china.jpg": "cat", "coffee.png": "horse"}
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
# The method, the mean and whether the order is BGR; pixels are 0 to 255.
PRESETS = {
    "keras-caffe": (Image.Resampling.NEAREST, [103.939, 116.779, 123.68], True),
    "levels-bgr": (Image.Resampling.BILINEAR, [0, 0, 0], True),
    "in-graph-bilinear": (Image.Resampling.BILINEAR, [0, 0, 0], False),
}

session = onnxruntime.InferenceSession(ROOT / "tests/cases/conventions" / CASE / "model.onnx")
accuracy, best = {}, {}
for preset, (method, mean, is_bgr) in PRESETS.items():
    right = 0
    for image, folder in FOLDERS.items():
        pixels = np.asarray(Image.open(ROOT / "assets/samples" / image).convert("RGB").resize((32, 32), method), np.float32)
        pixels = pixels[..., ::-1] if is_bgr else pixels
        tensor = np.ascontiguousarray(pixels - np.float32(mean), np.float32)[None]
        scores = session.run(None, {session.get_inputs()[0].name: tensor})[0][0]
        second, first = np.sort(scores)[-2:]
        assert first - second > 0.01, (preset, image, first, second)
        if image == "chelsea.png":
            best[preset] = {"index": int(scores.argmax()), "score": float(first)}
        right += CLASSES[scores.argmax()] == folder
    accuracy[preset] = right / len(FOLDERS)
# The graph is random, so the class is meaningless.
IMAGENET_CASE = "caffe2-resnet50"
photo = Image.open(ROOT / "assets/samples/chelsea.png").convert("RGB")
width, height = photo.size
photo = photo.resize((int(256 * width / height), 256), Image.Resampling.BILINEAR)
left, top = round((photo.width - 224) / 2), round((photo.height - 224) / 2)
pixels = np.asarray(photo.crop((left, top, left + 224, top + 224)), np.float32) / np.float32(255)
pixels = (pixels - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
session = onnxruntime.InferenceSession(ROOT / "tests/cases/conventions" / IMAGENET_CASE / "model.onnx")
tensor = np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32)[None]
scores = session.run(None, {session.get_inputs()[0].name: tensor})[0][0]
ids = [line.split("\t")[1] for line in (ROOT / "models/labels/imagenet-wordnet.txt").read_text().splitlines()]
imagenet = {"model": IMAGENET_CASE, "folder": ids[scores.argmax()]}

expected = {"model": CASE, "labels": "cifar-10", "folders": FOLDERS, "accuracy": accuracy, "best_of_chelsea": best, "imagenet": imagenet}
(HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
print(accuracy)
