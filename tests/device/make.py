"""Creates the small graph that the tests and `spotcheck runtime status` run on every device.

python3 tests/device/make.py        (needs numpy and onnx; not needed to run the tests)
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(7)


def weights(name, *shape):
    values = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:]) or 1), shape)
    return numpy_helper.from_array(values.astype(np.float32), name)


graph = helper.make_graph(
    [
        helper.make_node("Conv", ["input", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], transB=1),
    ],
    "tiny",
    [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, 32, 32])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
    [
        weights("w1", 8, 3, 3, 3),
        weights("b1", 8),
        weights("w2", 16, 8, 3, 3),
        weights("b2", 16),
        weights("w3", 10, 16),
        weights("b3", 10),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
onnx.checker.check_model(model)
onnx.save(model, Path(__file__).parent / "../../src/inference/tiny.onnx")
