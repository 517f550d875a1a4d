"""Shared by the exporters' modules: cases, images, and weights that make a random network worth comparing."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable

# The minimum score for comparison, the default of most packages.
MIN_SCORE = 0.25


@dataclasses.dataclass
class Case:
    """One export. `make(folder, images)` writes `model.onnx` and its additional files to `folder`, and returns the
    predictions of the package's own code: {image name: {"classes": {index: score}} or {"detections":
    [{"box": [x1, y1, x2, y2] in pixels of the image, "class_id", "score", perhaps "label"}]}}."""

    name: str
    family: str
    # The environment to run in: a key of ENVIRONMENTS in try-exporters.
    environment: str
    # The distribution whose version is reported.
    package: str
    make: Callable
    min_score: float = MIN_SCORE
    # Whether the package clips boxes to the image.
    clipped: bool = False
    # The maximum number of boxes per image.
    limit: int | None = None
    # Fields of the model card that a user has to set, because no file contains them.
    settings: tuple = ()


def stretch(width, height):
    """A setting: both sides to the given size."""
    return f'input.resize.stretch={{"width": {width}, "height": {height}}}'


def short_side_crop(short_side, size):
    """A setting: torchvision's Resize and CenterCrop."""
    return (f'input.resize.short-side-crop={{"short_side": {short_side}, "long_side": "down", "crop_width": {size}, '
            f'"crop_height": {size}, "crop_offset": "half-even"}}')


def detections(boxes, scores, class_ids, labels=None):
    """Plain numbers of boxes [n, 4], scores [n] and classes [n]; `labels` maps a class to its name."""
    found = []
    for box, score, class_id in zip(boxes, scores, class_ids, strict=True):
        entry = {"box": [float(edge) for edge in box], "class_id": int(class_id), "score": float(score)}
        if labels is not None:
            entry["label"] = str(labels[int(class_id)])
        found.append(entry)
    return {"detections": found}


def classes(scores):
    """All scores [C] of a classifier."""
    return {"classes": {index: float(score) for index, score in enumerate(scores)}}


def onnx_session(folder):
    """The model in ONNX Runtime with one thread, so that results do not depend on the computer."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(pathlib.Path(folder) / "model.onnx"), options, ["CPUExecutionProvider"])


def tensors(images, height, width, scale=255.0):
    """A simple batch [n, 3, height, width] of the images, for calibrating a network's statistics."""
    import numpy
    import torch
    from PIL import Image

    arrays = [numpy.asarray(Image.open(image).convert("RGB").resize((width, height))) for image in images]
    return torch.from_numpy(numpy.stack(arrays)).permute(0, 3, 1, 2).float() / scale


def settle(model, batch):
    """Sets the statistics of the batch normalizations to those of `batch`. Without this, the activations of a random
    network fade from layer to layer, until only rounding noise is left of an image."""
    import torch

    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        # A plain mean over the calls.
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        model(batch)
    for norm in norms:
        norm.eval()
        norm.momentum = 0.1


def spread(layers, forward, deviation=1.0, mean=0.0, above=None):
    """Scales the weights and biases of last layers, so that each of their outputs has this mean and deviation over all
    positions and images of a forward pass. With `above` = (count, low, high), both are chosen so that nine in ten
    images have at least `count` values above the logit `low`, and the highest of all is `high`. The layers are Linear
    ([B, …, C]) or Conv2d ([B, C, H, W]), with or without a bias."""
    import torch

    seen = {layer: [] for layer in layers}
    note = lambda layer, _, out: seen[layer].append(out.detach())  # noqa: E731
    hooks = [layer.register_forward_hook(note) for layer in layers]
    with torch.no_grad():
        forward()
        for hook in hooks:
            hook.remove()
        # [B, positions, C] of each layer.
        values = {}
        for layer in layers:
            last = [out.movedim(1, -1) if isinstance(layer, torch.nn.Conv2d) else out for out in seen[layer]]
            values[layer] = torch.cat([out.reshape(len(out), -1, out.shape[-1]).float() for out in last], 1)
        middle = {layer: out.mean((0, 1)) for layer, out in values.items()}
        width = {layer: out.std((0, 1)).clamp_min(1e-6) for layer, out in values.items()}
        if above is not None:
            count, low, high = above
            standard = [((values[layer] - middle[layer]) / width[layer]).flatten(1) for layer in layers]
            standard = torch.cat(standard, 1)
            reached = standard.topk(min(count, standard.shape[1]), 1).values[:, -1]
            reached = float(reached.quantile(0.1))
            deviation = (high - low) / (float(standard.max()) - reached)
            mean = low - deviation * reached
        for layer in layers:
            factor = deviation / width[layer]
            layer.weight.mul_(factor.reshape(-1, *[1] * (layer.weight.dim() - 1)))
            bias = torch.zeros_like(factor) if layer.bias is None else layer.bias
            layer.bias = torch.nn.Parameter((bias - middle[layer]) * factor + mean)


def through_torchscript():
    """For exporters older than the other method, which is now the default."""
    import torch

    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)


def export(model, arguments, folder, inputs, outputs, dynamic=None, opset=17):
    """Exports with TorchScript, like the exporters of these packages; `dynamic` is {name: {axis: name}}."""
    import torch

    # Its operator does not exist in ONNX.
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        torch.onnx.export(model, arguments, str(folder / "model.onnx"), input_names=inputs, output_names=outputs,
                          dynamic_axes=dynamic, opset_version=opset, dynamo=False)
