"""Runs a model card: converts an image to the model's input tensor, and the model's outputs to a prediction.

Spotcheck's manual explains the fields of a card. The arithmetic is the same as Spotcheck's, in the same precision.
"""

import json
import os
import sys

import numpy as np

# Microsoft's builds of ONNX Runtime write a file to the home folder, and send it, unless this is set on import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

import spotcheck_image
from spotcheck_inputs import auxiliary_input, place, to_tensor
from spotcheck_outputs import detections, ranked_classes

F32 = np.float32
# The types of the graph's inputs that 32-bit floats are converted to.
TYPES = {
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


class Model:
    def __init__(self, folder):
        with open(os.path.join(folder, "spotcheck-model.json"), encoding="utf-8") as file:
            package = json.load(file)
        self.card = package["card"]
        self.labels = {int(number): name for number, name in package["labels"].items()}
        self.top_k = package["keep"]["top_k"]
        self.min_score = F32(package["keep"]["min_score"])
        # In every call of the model, the first image is the predicted one; the others repeat it.
        self.images = self.card["input"].get("fixed_batch", 1)
        options = onnxruntime.SessionOptions()
        # Only errors: its warnings at every start do not help the reader of the container's log.
        options.log_severity_level = 3
        options.intra_op_num_threads = int(os.environ.get("SPOTCHECK_THREADS") or 0)
        weights = os.path.join(folder, self.card["file"]["name"])
        available = onnxruntime.get_available_providers()
        wanted = [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available]
        self.session = onnxruntime.InferenceSession(weights, options, providers=wanted)
        self.inputs = {port.name: port.type for port in self.session.get_inputs()}
        used = self.session.get_providers()[0]
        instead = "" if used == wanted[0] else f", because {wanted[0]} could not be used"
        print(f"{self.card['id']} on {used}{instead}", file=sys.stderr, flush=True)

    def predict(self, encoded):
        """The prediction for one encoded image, as written by `spotcheck predict`.

        Raises `Refused` if the image, and `RuntimeError` if the model is the cause of a failure.
        """
        (width, height), placement, inputs = self._prepared(encoded)
        outputs = self._run(inputs)
        (task, convention), = self.card["output"].items()
        prediction = {"status": "ok", "width": width, "height": height, "model": self.card["id"], "task": task}
        if task == "classification":
            prediction["classes"] = self._classes(convention, outputs)
        else:
            prediction["detections"] = self._detections(convention, outputs, placement)
        return prediction

    def _prepared(self, encoded):
        """The image size, the placement, and the graph's inputs by name. The pixels of the image are freed."""
        card = self.card["input"]
        with spotcheck_image.opened(encoded) as image:
            placement = place(card, image.size)
            # A card without a name is for a graph whose first input is the image.
            inputs = {card.get("name") or next(iter(self.inputs)): to_tensor(card, placement, image)}
            for auxiliary in card.get("auxiliary", ()):
                inputs[auxiliary["name"]] = auxiliary_input(auxiliary, placement, image.size).astype(F32)
            return image.size, placement, inputs

    def _run(self, inputs):
        """All outputs by name."""
        names = [port.name for port in self.session.get_outputs()]
        try:
            values = self.session.run(names, {name: self._fed(name, values) for name, values in inputs.items()})
            return {name: _as_array(value) for name, value in zip(names, values)}
        except Exception as error:
            raise RuntimeError(f"ONNX Runtime could not run the model: {error}") from error

    def _fed(self, name, values):
        """The inputs in the types declared by the graph, repeated for each image of a fixed batch."""
        if values.dtype == F32:
            values = values.astype(TYPES.get(self.inputs.get(name), F32), copy=False)
        return np.repeat(values, self.images, axis=0) if self.images > 1 else values

    def _classes(self, convention, outputs):
        numbers, scores = ranked_classes(convention, outputs, self.top_k, self.images)
        return [
            {"index": int(number), "label": self._label(int(number)), "score": _shortest(score)}
            for number, score in zip(numbers, scores)
        ]

    def _detections(self, convention, outputs, placement):
        found = zip(*detections(convention, outputs, placement, self.min_score, self.images))
        return [
            {"index": index, "box": [_shortest(edge) for edge in box], "class_id": int(number),
             "label": self._label(int(number)), "score": _shortest(score)}
            for index, (box, number, score) in enumerate(found)
        ]

    def _label(self, number):
        return self.labels.get(number, f"class {number}")


def _as_array(value):
    """Converts a list of maps from class name to score to rows in the order of the names."""
    if isinstance(value, list):
        return np.array([[row[name] for name in sorted(row)] for row in value], F32)
    return value


def _shortest(value):
    """The number with the fewest digits that is the same 32-bit float."""
    return float(str(F32(value)))
