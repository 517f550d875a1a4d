"""Carries out a model card: an image becomes the model's input tensor, and its outputs become the prediction.

Spotcheck's manual explains the fields of a card. The arithmetic is Spotcheck's, in the same precision.
"""

import json
import math
import os
import sys
import typing

import numpy as np
from PIL import Image

# Microsoft's builds of ONNX Runtime write a file in the home folder, and send it, unless this is set on import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

import spotcheck_image
from spotcheck_outputs import detections, ranked_classes

F32 = np.float32


class Model:
    def __init__(self, folder):
        with open(os.path.join(folder, "spotcheck-model.json"), encoding="utf-8") as file:
            package = json.load(file)
        self.card = package["card"]
        self.labels = {int(number): name for number, name in package["labels"].items()}
        self.top_k = package["keep"]["top_k"]
        self.min_score = F32(package["keep"]["min_score"])
        # In every call of the model.
        self.images = self.card["input"].get("fixed_batch", 1)
        options = onnxruntime.SessionOptions()
        # Errors only: its warnings at every start do not help the reader of the container's log.
        options.log_severity_level = 3
        options.intra_op_num_threads = int(os.environ.get("SPOTCHECK_THREADS") or 0)
        weights = os.path.join(folder, self.card["file"]["name"])
        available = onnxruntime.get_available_providers()
        wanted = [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available]
        self.session = onnxruntime.InferenceSession(weights, options, providers=wanted)
        self.input = next(
            (port for port in self.session.get_inputs() if port.name == self.card["input"].get("name")),
            self.session.get_inputs()[0],
        )
        used = self.session.get_providers()[0]
        instead = "" if used == wanted[0] else f", because {wanted[0]} could not be used"
        print(f"{self.card['id']} on {used}{instead}", file=sys.stderr, flush=True)

    def predict(self, encoded):
        """The prediction for one encoded image, as `spotcheck predict` writes it.

        Raises `Refused` if the image, and `RuntimeError` if the model is the cause of a failure.
        """
        (width, height), placement, tensor = self._prepared(encoded)
        outputs = self._run(tensor)
        (task, convention), = self.card["output"].items()
        prediction = {"status": "ok", "width": width, "height": height, "model": self.card["id"], "task": task}
        if task == "classification":
            prediction["classes"] = self._classes(convention, outputs)
        else:
            prediction["detections"] = self._detections(convention, outputs, placement)
        return prediction

    def _prepared(self, encoded):
        """Size of the image, placement and tensor. The pixels of the image are freed."""
        card = self.card["input"]
        with spotcheck_image.opened(encoded) as image:
            placement = place(card["resize"], image.size)
            return image.size, placement, to_tensor(card, placement, image)

    def _run(self, tensor):
        """All outputs by name."""
        if self.input.type == "tensor(float16)":
            tensor = tensor.astype(np.float16)
        if self.images > 1:
            tensor = np.repeat(tensor, self.images, axis=0)
        names = [port.name for port in self.session.get_outputs()]
        try:
            return dict(zip(names, self.session.run(names, {self.input.name: tensor})))
        except Exception as error:
            raise RuntimeError(f"ONNX Runtime could not run the model: {error}") from error

    def _classes(self, convention, outputs):
        numbers, scores = ranked_classes(convention, outputs, self.top_k, self.images)
        return [
            {"index": int(number), "label": self._label(int(number)), "score": _shortest(score)}
            for number, score in zip(numbers, scores)
        ]

    def _detections(self, convention, outputs, placement):
        found = zip(*detections(convention, outputs, placement, self.min_score, self.images))
        return [
            {"box": [_shortest(edge) for edge in box], "class_id": int(number), "label": self._label(int(number)),
             "score": _shortest(score)}
            for box, number, score in found
        ]

    def _label(self, number):
        return self.labels.get(number, f"class {number}")


class Placement(typing.NamedTuple):
    """The place of the resized image in the tensor. Pairs are width and height, or x and y."""

    # Size of the whole resized image; `window` (left, top, width, height) is the part that is used.
    full: tuple
    window: tuple
    # Size of the tensor, and the position of the window in it.
    canvas: tuple
    offset: tuple
    # Level of the pixels around the window; `None` for a value of zero after normalisation.
    fill: typing.Optional[int]
    # From the tensor's pixels to those of the image: `x * scale + shift`.
    scale: tuple
    shift: tuple


def place(resize, size):
    (rule, values), = resize.items()
    return RULES[rule](size, **values)


def _filled(size, full):
    return Placement(full, (0, 0, *full), full, (0, 0), None, _ratios(size, full), (0.0, 0.0))


def _keep(size):
    return _filled(size, size)


def _stretch(size, *, width, height):
    return _filled(size, (width, height))


def _short_side_crop(size, *, short_side, long_side, crop_width, crop_height, crop_offset):
    short = min(size)
    if long_side == "down":
        full = tuple(max(short_side, int(short_side * side / short)) for side in size)
    else:
        full = tuple(max(short_side, round(side * (short_side / short))) for side in size)
    crop = (crop_width, crop_height)
    gaps = [outer - inner for outer, inner in zip(full, crop)]
    left, top = (gap // 2 if crop_offset == "down" else round(gap / 2) for gap in gaps)
    scale = _ratios(size, full)
    return Placement(full, (left, top, *crop), crop, (0, 0), None, scale, (left * scale[0], top * scale[1]))


def _letterbox(size, *, width, height, fill):
    canvas = (width, height)
    ratio = min(width / size[0], height / size[1])
    full = tuple(min(max(math.floor(side * ratio + 0.5), 1), room) for side, room in zip(size, canvas))
    left, top = ((room - side) // 2 for side, room in zip(full, canvas))
    scale = _ratios(size, full)
    return Placement(full, (0, 0, *full), canvas, (left, top), fill, scale, (-left * scale[0], -top * scale[1]))


def _short_side_pad(size, *, short_side, max_long_side, pad_to_multiple):
    # Boxes are scaled back by the one ratio of both axes, not by the rounded sizes.
    ratio = min(short_side / min(size), max_long_side / max(size))
    full = tuple(max(1, int(side * ratio)) for side in size)
    canvas = tuple(-(-side // pad_to_multiple) * pad_to_multiple for side in full)
    return Placement(full, (0, 0, *full), canvas, (0, 0), None, (1 / ratio, 1 / ratio), (0.0, 0.0))


RULES = {
    "keep": _keep,
    "stretch": _stretch,
    "short-side-crop": _short_side_crop,
    "letterbox": _letterbox,
    "short-side-pad": _short_side_pad,
}


def _ratios(numerators, denominators):
    return tuple(numerator / denominator for numerator, denominator in zip(numerators, denominators))


def to_tensor(card, placement, image):
    """`image` resized, padded and normalised, in the layout of the card's input."""
    left, top, width, height = placement.window
    # One axis after the other, as Pillow does it; the second one only for what the crop keeps.
    resized = image.resize((placement.full[0], image.height), Image.Resampling.BILINEAR)
    resized = resized.crop((left, 0, left + width, image.height))
    resized = resized.resize((width, placement.full[1]), Image.Resampling.BILINEAR)
    levels = np.asarray(resized.crop((0, top, width, top + height)))
    if card.get("channels") == "bgr":
        levels = levels[..., ::-1]
    is_uint8 = card["type"] == "uint8"
    tensor = np.zeros((placement.canvas[1], placement.canvas[0], 3), np.uint8 if is_uint8 else F32)
    x, y = placement.offset
    for channel in range(3):
        values = np.arange(256, dtype=tensor.dtype)
        if not is_uint8:
            values = (values / F32(card["divide_by"]) - F32(card["mean"][channel])) / F32(card["std"][channel])
        if placement.fill is not None:
            tensor[..., channel] = values[placement.fill]
        tensor[y : y + height, x : x + width, channel] = values[levels[..., channel]]
    if card["layout"] in ("nchw", "chw"):
        tensor = tensor.transpose(2, 0, 1)
    return np.ascontiguousarray(tensor[None] if card["layout"].startswith("n") else tensor)


def _shortest(value):
    """The number with the fewest digits that is the same 32-bit float."""
    return float(str(F32(value)))
