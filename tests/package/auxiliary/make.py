"""A classifier of exactly three images whose scores depend on each auxiliary input.

usage: python make.py        (pip install onnx==1.23.2 numpy)
Writes model.onnx and model.toml to its own folder.
"""

import hashlib
import pathlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
F32, F64, I64, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
BATCH = 3
INPUTS = {
    "image": (F32, [BATCH, 3, 48, 64], None),
    "scale_factor": (F32, [BATCH, 2], "scale-factor"),
    "im_shape": (I64, [BATCH, 2], "input-height-width"),
    "image_shape": (F64, [BATCH, 2], "image-height-width"),
    "target_sizes": (I64, [BATCH, 2], "image-width-height"),
    "pixel_mask": (BOOL, [BATCH, 48, 64], "pixel-mask"),
}
# Sizes become scores near 1, which reveal a wrong number.
DIVISORS = {"scale_factor": 1, "im_shape": 60, "image_shape": 500, "target_sizes": 500, "pixel_mask": 1}

nodes, constants, parts = [], [], ["means"]
nodes.append(helper.make_node("ReduceMean", ["image"], ["means"], axes=[2, 3], keepdims=0))
for name, divisor in DIVISORS.items():
    numbers = f"{name}_f32"
    nodes.append(helper.make_node("Cast", [name], [numbers], to=F32))
    if name == "pixel_mask":
        nodes.append(helper.make_node("ReduceMean", [numbers], ["shares"], axes=[2], keepdims=0))
        nodes.append(helper.make_node("ReduceMean", ["shares"], ["share"], axes=[1], keepdims=1))
        numbers = "share"
    constants.append(numpy_helper.from_array(np.float32(divisor), f"{name}_divisor"))
    nodes.append(helper.make_node("Div", [numbers, f"{name}_divisor"], [f"{name}_part"]))
    parts.append(f"{name}_part")
nodes.append(helper.make_node("Concat", parts, ["logits"], axis=1))

ports = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape, _) in INPUTS.items()]
logits = helper.make_tensor_value_info("logits", F32, [BATCH, 12])
graph = helper.make_graph(nodes, "graph", ports, [logits], constants)
opsets = [helper.make_opsetid("", 17)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="spotcheck-tests")
weights = model.SerializeToString()
(HERE / "model.onnx").write_bytes(weights)

auxiliary = "".join(
    f'\n[[input.auxiliary]]\nname = "{name}"\nvalue = "{value}"\n' for name, (_, _, value) in INPUTS.items() if value
)
(HERE / "model.toml").write_text(f'''id = "auxiliary"
name = "Auxiliary inputs"
task = "classification"
license = "MIT OR Apache-2.0"
origin = "tests/package/auxiliary/make.py"

[file]
name = "model.onnx"
bytes = {len(weights)}
sha256 = "{hashlib.sha256(weights).hexdigest()}"
urls = []

[input]
name = "image"
layout = "nchw"
type = "float32"
channels = "rgb"
divide_by = 255.0
fixed_batch = {BATCH}
interpolation = "opencv-linear"

[input.resize.letterbox]
width = 64
height = 48
fill = 114
{auxiliary}
[output.classification]
name = "logits"
values = "logits"
''')
