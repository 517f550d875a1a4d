"""Tiny networks with the heads of common families, the tensor that describes an image, and its values by onnxruntime.

usage: python make.py        (pip install onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 pillow)
Writes CASE/model.onnx, its card model.toml, and CASE/expected.json: the tensor, and the embedding of image.png (or
CASE/image.png), or null for both if the graph does not show which tensor it is. The tensor is made an output with onnx.helper, its values come from onnxruntime, and they are averaged
with NumPy. Weights are random; the image has the size of the inputs, so that nothing is resized.

For detectors, also the vectors of boxes: of some rectangles if they are averages of feature maps, or of all candidates,
best first. A map is averaged by interpolating its integral image.
"""

import hashlib
import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

HERE = pathlib.Path(__file__).parent
SIDE = 64
random = np.random.default_rng(3)


def make_image(side, file):
    y, x = np.mgrid[0:side, 0:side]
    image = np.stack([x * 4 % 256, (y * 5 + x) % 256, np.maximum(255 - y * 3, 0)], axis=-1).astype(np.uint8)
    image[10:30, 20:50] = (230, 40, 30)
    Image.fromarray(image).save(file)
    return image


small_image = make_image(SIDE, HERE / "image.png")


class Net:
    def __init__(self, element=np.float32):
        self.nodes, self.weights, self.element = [], [], element

    def const(self, values, element=None):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, element or self.element), name))
        return name

    def op(self, op, *inputs, name=None, outputs=1, **attributes):
        made = [name or f"t{len(self.nodes)}"] + [f"t{len(self.nodes)}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(op, inputs, made, name=f"/{op}_{len(self.nodes)}", **attributes))
        return made[0]

    def conv(self, data, channels_in, channels, kernel=3, stride=2, name=None):
        weights = random.normal(scale=(channels_in * kernel * kernel) ** -0.5, size=(channels, channels_in, kernel, kernel))
        return self.op("Conv", data, self.const(weights), strides=[stride] * 2, pads=[kernel // 2] * 4, name=name)

    def dense(self, data, inputs, outputs, name=None):
        weights = random.normal(scale=inputs**-0.5, size=(inputs, outputs))
        return self.op("MatMul", data, self.const(weights), name=name)

    def backbone(self, data="image"):
        """Strides 4, 8 and 16: 8, 16 and 24 channels."""
        first = self.op("Relu", self.conv(self.conv(data, 3, 8), 8, 8))
        second = self.op("Relu", self.conv(first, 8, 16))
        return [first, second, self.op("Relu", self.conv(second, 16, 24))]


def pooled(net):
    """As ResNet: a pooled map, flattened, then Gemm."""
    pooled = net.op("GlobalAveragePool", net.backbone()[2])
    flat = net.op("Flatten", pooled, name="features")
    net.op("Gemm", flat, net.const(random.normal(size=(5, 24))), net.const(np.zeros(5)), transB=1, name="logits")
    return "features", lambda values: values


def conv_head(net):
    """As SqueezeNet: the last layer is a convolution, pooled after it."""
    features = net.op("Relu", net.backbone()[2], name="features")
    classes = net.conv(features, 24, 5, 1, 1)
    net.op("Flatten", net.op("GlobalAveragePool", classes), name="logits")
    return "features", lambda values: values.mean(axis=(2, 3))


def tokens(net):
    tokens = net.op("Reshape", net.backbone()[2], net.const([0, 24, 16], np.int64))
    return net.op("Transpose", tokens, perm=[0, 2, 1])


def class_token(net):
    """As ViT: the first token, normalized."""
    token = net.op("Gather", tokens(net), net.const(0, np.int64), axis=1)
    scale, bias = net.const(np.linspace(0.5, 2, 24)), net.const(np.linspace(-1, 1, 24))
    normal = net.op("LayerNormalization", token, scale, bias, name="features")
    net.op("Add", net.dense(normal, 24, 5), net.const(np.zeros(5)), name="logits")
    return "features", lambda values: values


def token_mean(net):
    """Classes of every token, averaged."""
    features = net.op("Tanh", tokens(net), name="features")
    net.op("ReduceMean", net.dense(features, 24, 5), axes=[1], keepdims=0, name="logits")
    return "features", lambda values: values.mean(axis=1)


def levels(net):
    """As YOLOv8: per level a branch for classes and one for boxes, the latter with a convolution over its bins."""
    rows = []
    for number, (level, channels) in enumerate(zip(net.backbone(), (8, 16, 24))):
        features = net.op("Relu", net.conv(level, channels, 12, 3, 1), name=f"features{number}")
        side = 16 >> number
        flat = net.const([0, -1, side * side], np.int64)
        classes = net.op("Sigmoid", net.op("Reshape", net.conv(features, 12, 3, 1, 1), flat))
        bins = net.op("Reshape", net.conv(level, channels, 16, 1, 1), net.const([0, 4, 4, side * side], np.int64))
        bins = net.op("Softmax", net.op("Transpose", bins, perm=[0, 2, 1, 3]), axis=1)
        box = net.op("Conv", bins, net.const(np.arange(4).reshape(1, 4, 1, 1)))
        box = net.op("Mul", net.op("Reshape", box, flat), net.const(4.0 * 2**number))
        rows.append(net.op("Concat", net.op("Add", box, net.const(8.0)), classes, axis=1))
    net.op("Concat", *rows, axis=2, name="output0")
    return "features2", lambda values: values.mean(axis=(2, 3))


def queries(net):
    """As DETR: hidden states of queries, a class and a box each."""
    hidden = net.op("Relu", net.dense(tokens(net), 24, 20), name="hidden")
    net.op("Softmax", net.dense(hidden, 20, 3), name="scores")
    net.op("Sigmoid", net.dense(net.op("Relu", net.dense(hidden, 20, 20)), 20, 4), name="boxes")
    return "hidden", lambda values: values.mean(axis=1)


def decoder(net):
    """The hidden states after each layer of a decoder."""
    states, dims = [tokens(net)], 24
    for number in range(3):
        states.append(net.op("Relu", net.dense(states[-1], dims, 20), name=f"hidden{number}"))
        dims = 20
    return states[1:]


def stack(net, tensors, axis, name=None):
    """As torch.stack."""
    axes = net.const([axis], np.int64)
    return net.op("Concat", *[net.op("Unsqueeze", tensor, axes) for tensor in tensors], axis=axis, name=name)


def head_per_layer(net):
    """As RT-DETR: heads of their own for each layer of the decoder, whose results are stacked; the last is returned."""
    states = decoder(net)
    for name, activation, size in [("scores", "Softmax", 3), ("boxes", "Sigmoid", 4)]:
        heads = stack(net, [net.op("Add", net.dense(state, 20, size), net.const(np.ones(size))) for state in states], 1)
        net.op(activation, net.op("Gather", heads, net.const(-1, np.int64), axis=1), name=name)
    return "hidden2", lambda values: values.mean(axis=1)


def stacked_layers(net):
    """As torch.hub's DETR: heads for all layers of the decoder together, whose states have the queries first."""
    states = [net.op("Transpose", state, perm=[1, 0, 2]) for state in decoder(net)]
    together = net.op("Transpose", stack(net, states, 0), perm=[0, 2, 1, 3], name="hs")
    last = [net.const(number, np.int64) for number in ([-1], [2**63 - 1], [0])]
    scores = net.op("Slice", net.op("Add", net.dense(together, 20, 3), net.const(np.ones(3))), *last)
    net.op("Softmax", net.op("Squeeze", scores, net.const([0], np.int64)), name="scores")
    boxes = net.op("Gather", net.dense(together, 20, 4), net.const(-1, np.int64), axis=0)
    net.op("Sigmoid", boxes, name="boxes")
    return "hs[-1]", lambda values: values.mean(axis=1)


def reshaped_layers(net):
    """As `head_per_layer`, but the axis of the layers is added in a way that does not show which has which index."""
    shape = net.const([1, -1, 16, 3], np.int64)
    heads = [net.op("Reshape", net.dense(state, 20, 3), shape) for state in decoder(net)]
    last = net.op("Gather", net.op("Concat", *heads, axis=0), net.const(-1, np.int64), axis=0)
    net.op("Softmax", last, name="scores")
    net.op("Sigmoid", net.dense(tokens(net), 24, 4), name="boxes")
    return None, None


def proposals(net):
    """As Faster R-CNN: features of boxes of one image, in rows."""
    rows = net.op("Reshape", tokens(net), net.const([-1, 24], np.int64))
    features = net.op("Relu", net.dense(rows, 24, 10), name="features")
    net.op("Softmax", net.dense(features, 10, 3), name="scores")
    net.op("Abs", net.dense(features, 10, 4), name="boxes")
    return "features", lambda values: values.mean(axis=0, keepdims=True)


def two_stage(net):
    """As Faster R-CNN with a feature pyramid: boxes are cut out of maps with the same channels."""
    maps = [net.conv(level, c, 12, 1, 1, name=f"p{n}") for n, (level, c) in enumerate(zip(net.backbone(), (8, 16, 24)))]
    corners = random.uniform(0, 120, size=(6, 2))
    boxes = np.hstack([corners, corners + random.uniform(8, 130, size=(6, 2))])
    rois, first = net.const(boxes), net.const(np.zeros(6), np.int64)
    cut = [
        net.op("RoiAlign", map, rois, first, output_height=2, output_width=2, sampling_ratio=2, spatial_scale=1 / (4 << n))
        for n, map in enumerate(maps)
    ]
    flat = net.op("Flatten", net.op("Sum", *cut))
    features = net.op("Relu", net.dense(flat, 48, 10), name="features")
    best = net.op("TopK", net.op("Softmax", net.dense(features, 10, 3)), net.const([3], np.int64), axis=1, outputs=2)
    net.op("Identity", best, name="scores")
    net.op("Add", rois, net.const(np.zeros(4)), name="boxes")
    return "features", lambda values: values.mean(axis=0, keepdims=True)


def vector(net):
    """As face embeddings and CLIP's image encoder: a vector of length 1."""
    pooled = net.op("Flatten", net.op("GlobalAveragePool", net.backbone()[2]))
    row = net.dense(pooled, 24, 512)
    net.op("Div", row, net.op("ReduceL2", row, axes=[1], keepdims=1), name="embedding")
    return "embedding", lambda values: values


def planes(net):
    """A pooled map whose height and width of 1 remain."""
    net.op("GlobalAveragePool", net.backbone()[2], name="embedding")
    return "embedding", lambda values: values[:, :, 0, 0]


def all_tokens(net):
    """As DINOv2: a token for the image as a whole, then one for each patch."""
    patches = tokens(net)
    whole = net.op("ReduceMax", patches, axes=[1], keepdims=1)
    joined = net.op("Concat", net.op("Tanh", whole), patches, axis=1)
    scale, bias = net.const(np.linspace(0.5, 2, 24)), net.const(np.linspace(-1, 1, 24))
    net.op("LayerNormalization", joined, scale, bias, name="embedding")
    return "embedding", lambda values: values[:, 0]


def patch_tokens(net):
    """As SigLIP and Swin: only tokens of patches."""
    net.op("Tanh", tokens(net), name="embedding")
    return "embedding", lambda values: values.mean(axis=1)


def feature_map(net):
    net.op("Relu", net.backbone()[2], name="embedding")
    return "embedding", lambda values: values.mean(axis=(2, 3))


def average_under(map, box, side):
    """The mean of each channel under a box, in pixels of the input."""
    channels, rows, columns = map.shape
    integral = np.zeros((channels, rows + 1, columns + 1))
    integral[:, 1:, 1:] = map.cumsum(axis=1).cumsum(axis=2)

    def at(x, y):
        x, y = np.clip(x * columns / side, 0, columns), np.clip(y * rows / side, 0, rows)
        left, top = int(min(x, columns - 1)), int(min(y, rows - 1))
        u, v = x - left, y - top
        cell = integral[:, top : top + 2, left : left + 2]
        return (cell[:, 0, 0] * (1 - u) + cell[:, 0, 1] * u) * (1 - v) + (cell[:, 1, 0] * (1 - u) + cell[:, 1, 1] * u) * v

    x1, y1, x2, y2 = box
    area = (x2 - x1) * columns / side * (y2 - y1) * rows / side
    return (at(x2, y2) - at(x1, y2) - at(x2, y1) + at(x1, y1)) / area


def regions(maps, side):
    """Some rectangles, and the averages under them; of several maps, the one that a feature pyramid network uses."""
    found = []
    for box in [(3.5, 2.25, 30, 40), (0, 0, side, side), (10.1, 50.3, 10.9, 51.7), (side / 2, side / 3, side - 1, side)]:
        x1, y1, x2, y2 = box
        level = int(np.floor(4 + np.log2(np.sqrt((x2 - x1) * (y2 - y1)) / 224)))
        strides = [int(np.log2(side // map.shape[2])) for map in maps]
        map = maps[int(np.argmin([abs(stride - level) for stride in strides]))]
        found.append({"box": list(box), "vector": average_under(map, box, side).tolist()})
    return found


CLASSES = '[output.classification]\nvalues = "logits"\n'
PACKED = """[output.detection]
boxes = "output0"
scores = { output = "output0", column = 4 }
candidates_last = true
box_format = "cxcywh"
box_space = "model-pixels"
"""
VECTOR = '[output.embedding]\nname = "embedding"\n'
CLASS_TOKEN = VECTOR + 'tokens = "class"\n'
SEPARATE = """[output.detection]
boxes = "boxes"
scores = "scores"
box_format = "xyxy"
box_space = "model-pixels"
"""


def write(case, head, output, batch="batch", element=np.float32, external=False, side=SIDE, boxes=None):
    folder = HERE / case
    folder.mkdir(exist_ok=True)
    net = Net(element)
    tensor, pool = head(net)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    named = ("logits", "output0", "scores", "boxes", "embedding")
    ports = [name for name in named if any(name in node.output for node in net.nodes)]
    task = output.split("]")[0].removeprefix("[output.")
    graph = helper.make_graph(
        net.nodes,
        case,
        [helper.make_tensor_value_info("image", number, [batch, 3, side, side])],
        [helper.make_tensor_value_info(name, number, None) for name in ports],
        net.weights,
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="make.py")
    file = folder / "model.onnx"
    if external:
        (folder / "weights.bin").unlink(missing_ok=True)
        onnx.save(model, file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        onnx.save(model, file)
    bytes_ = file.read_bytes()
    batches = "batches = false\n" if batch == 1 else "" if batch == "batch" else f"fixed_batch = {batch}\n"
    (folder / "model.toml").write_text(
        f'id = "{case}"\nname = "{case}"\ntask = "{task}"\n'
        f'license = "MIT"\norigin = "make.py"\n\n[file]\nname = "model.onnx"\nbytes = {len(bytes_)}\n'
        f'sha256 = "{hashlib.sha256(bytes_).hexdigest()}"\n\n[input]\nname = "image"\nlayout = "nchw"\n'
        f'type = "{np.dtype(element).name}"\ndivide_by = 255.0\n{batches}[input.resize.stretch]\nwidth = {side}\n'
        f"height = {side}\n\n{output}"
    )
    model = onnx.load(file)
    of_boxes = [boxes] if isinstance(boxes, str) else boxes or []
    # A part, such as `hs[-1]`, is computed by NumPy.
    inner = [name.split("[")[0] for name in dict.fromkeys([tensor, *of_boxes])] if tensor else []
    inside = [name for name in inner if name not in ports]
    model.graph.output.extend(helper.make_tensor_value_info(name, number, None) for name in inside)
    image = small_image if side == SIDE else make_image(side, folder / "image.png")
    data = (image / np.float32(255)).transpose(2, 0, 1)[None].astype(element)
    data = np.repeat(data, batch if isinstance(batch, int) else 1, axis=0)
    (folder / "with-output.onnx").write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(folder / "with-output.onnx", providers=["CPUExecutionProvider"])
    (folder / "with-output.onnx").unlink()
    values = {name: value.astype(np.float64) for name, value in zip(inner, session.run(inner, {"image": data}))}
    values |= {name: values[name.split("[")[0]][-1] for name in (tensor, *of_boxes) if name and name.endswith("[-1]")}
    expected = {"tensor": tensor, "embedding": pool(values[tensor])[0].tolist() if tensor else None}
    if isinstance(boxes, str):
        (scores,) = session.run(["scores"], {"image": data})
        best = scores.reshape(-1, scores.shape[-1]).max(axis=1)
        order = np.argsort(-best, kind="stable")
        expected["boxes"] = {"tensors": [boxes], "candidates": values[boxes].reshape(len(best), -1)[order].tolist()}
    elif boxes:
        expected["boxes"] = {"tensors": boxes, "regions": regions([values[name][0] for name in boxes], side)}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


write("pooled", pooled, CLASSES)
write("conv-head", conv_head, CLASSES)
write("class-token", class_token, CLASSES)
write("token-mean", token_mean, CLASSES)
write("half", pooled, CLASSES, element=np.float16)
write("external-data", pooled, CLASSES, external=True)
write("fixed-batch", pooled, CLASSES, batch=4)
write("levels", levels, PACKED, boxes=["features2"])
write("queries", queries, SEPARATE, boxes="hidden")
write("proposals", proposals, SEPARATE, batch=1, boxes="features")
write("two-stage", two_stage, SEPARATE, batch=1, side=256, boxes=["p0", "p1", "p2"])
# Encoders: their output is the embedding.
write("encoder-vector", vector, VECTOR)
write("encoder-planes", planes, VECTOR)
write("encoder-class-token", all_tokens, CLASS_TOKEN)
write("encoder-token-mean", patch_tokens, VECTOR)
write("encoder-map", feature_map, VECTOR)
write("encoder-half", vector, VECTOR, element=np.float16)
write("encoder-fixed-batch", all_tokens, CLASS_TOKEN, batch=4)
# Detection transformers with several layers in their decoder.
write("head-per-layer", head_per_layer, SEPARATE, boxes="hidden2")
write("stacked-layers", stacked_layers, SEPARATE, boxes="hs[-1]")
write("reshaped-layers", reshaped_layers, SEPARATE)
