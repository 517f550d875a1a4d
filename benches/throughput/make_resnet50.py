"""Writes torchvision's ResNet-50 as ONNX, with random weights, with its model card next to it.

usage: python make_resnet50.py FOLDER

The graph is the result of `torch.onnx.export(torchvision.models.resnet50().eval(), …)`: the stride is in the 3x3
convolution (“v1.5”) and batch normalization is folded into the convolutions. Only the weights are drawn at random (He's
initialization, fixed seed): the arithmetic is the same, and torch is not needed.
"""
import hashlib
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CARD = """id = "resnet50-random"
name = "ResNet-50 with random weights"
task = "classification"
license = "MIT OR Apache-2.0"
origin = "benches/throughput/make_resnet50.py"
labels = "imagenet"

[file]
name = "resnet50.onnx"
bytes = {bytes}
sha256 = "{sha256}"

[input]
layout = "nchw"
type = "float32"
channels = "rgb"
divide_by = 255.0
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
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


class Graph:
    def __init__(self):
        self.random = np.random.default_rng(50)
        self.nodes, self.weights, self.count = [], [], 0

    def node(self, kind, inputs, **attributes):
        self.count += 1
        output = f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"node_{output}", **attributes))
        return output

    def weight(self, shape, fan_in, gain):
        name = f"weight_{len(self.weights)}"
        values = self.random.normal(0, gain / np.sqrt(fan_in), shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, value, inputs, outputs, size, stride=1, gain=np.sqrt(2)):
        pad = size // 2
        kernel = self.weight((outputs, inputs, size, size), inputs * size * size, gain)
        bias = self.weight((outputs,), 1e4, 1.0)
        return self.node("Conv", [value, kernel, bias], kernel_shape=[size, size], strides=[stride] * 2,
                         pads=[pad] * 4, dilations=[1, 1], group=1)

    def bottleneck(self, value, inputs, width, stride):
        outputs = width * 4
        inner = self.node("Relu", [self.conv(value, inputs, width, 1)])
        inner = self.node("Relu", [self.conv(inner, width, width, 3, stride)])
        # A small last convolution keeps the sum of all blocks in range, as training does.
        inner = self.conv(inner, width, outputs, 1, gain=0.3)
        if stride != 1 or inputs != outputs:
            value = self.conv(value, inputs, outputs, 1, stride, gain=1.0)
        return self.node("Relu", [self.node("Add", [inner, value])]), outputs


def resnet50():
    graph = Graph()
    value = graph.node("Relu", [graph.conv("input", 3, 64, 7, 2)])
    value = graph.node("MaxPool", [value], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            value, channels = graph.bottleneck(value, channels, width, stride)
    value = graph.node("Flatten", [graph.node("GlobalAveragePool", [value])], axis=1)
    scores = [value, graph.weight((1000, channels), channels, 1.0), graph.weight((1000,), 1e4, 1.0)]
    graph.nodes.append(helper.make_node("Gemm", scores, ["output"], alpha=1.0, beta=1.0, transB=1))
    batch = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "resnet50", [batch("input", [3, 224, 224])], [batch("output", [1000])], graph.weights
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / "resnet50.onnx"
    if not weights.exists() or not (folder / "model.toml").exists():
        content = resnet50().SerializeToString()
        weights.write_bytes(content)
        card = CARD.format(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
        (folder / "model.toml").write_text(card)
    return weights


if __name__ == "__main__":
    make(Path(sys.argv[1]))
