"""Small graphs whose row of numbers is an embedding or a regression, and classifiers that look like one.

usage: python make_features.py        (pip install onnx==1.23.2 onnxruntime==1.32.0 pillow numpy)
Writes folders as make.py does. The outputs have the names, sizes and values of CLIP, DINOv2, timm's feature
extractors, face embeddings and box regressors; the weights are random.
"""

import json

import numpy as np
from make import F32, HERE, Graph, write

random = np.random.default_rng(22)
IMAGENET = [0.485, 0.456, 0.406]
CLIP = [0.48145466, 0.4578275, 0.40821073]


def features(graph, count, function=None):
    """Random products of the mean of each channel."""
    means = graph.op("ReduceMean", "pixel_values", axes=[2, 3], keepdims=0)
    row = graph.op("MatMul", means, graph.const(random.normal(size=(3, count))))
    return graph.op(function, row) if function else row


def make(case, graph, outputs, files=(), metadata=None, **expected):
    """`outputs` are names, values and shapes."""
    for name, value, _ in outputs:
        graph.op("Identity", value, outputs=[name])
    ports = [(name, F32, shape) for name, _, shape in outputs]
    write(case, graph.model([("pixel_values", F32, [1, 3, 64, 64])], ports, metadata), **expected)
    for name, content in dict(files).items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
        (HERE / case / name).write_text(text)


def encoder(name, because, crop=73, mean=IMAGENET, **more):
    """The parts of a card that are checked. `because` is whether the task is recognized or assumed."""
    resize = {"short_side": crop, "long_side": "down", "crop_width": 64, "crop_height": 64, "crop_offset": "half-even"}
    card = {
        "task": "embedding",
        "input": {"mean": mean, "resize": {"short-side-crop": resize}},
        "output": {"embedding": {"name": name}},
    }
    pixels = [f"input.{field}" for field in ("channels", "divide_by", "mean", "std", "resize", "interpolation")]
    basis = {"recognized": ["output.embedding.name"], "assumed": pixels}
    basis[because] = ["task", *basis[because]]
    return {"card": card, **basis, "ignored": 0, **more}


def embeddings_and_regressions():
    graph = Graph()
    config = {"architectures": ["CLIPVisionModelWithProjection"], "model_type": "clip_vision_model"}
    row = ("image_embeds", features(graph, 100), [1, 100])
    make("clip-image-encoder", graph, [row], {"config.json": config}, **encoder("image_embeds", "recognized", crop=64, mean=CLIP))

    graph = Graph()
    config = {"architecture": "resnet18", "num_classes": 0, "num_features": 100, "pretrained_cfg": {"num_classes": 0}}
    row = ("output", features(graph, 100), [1, 100])
    make("timm-features", graph, [row], {"config.json": config}, **encoder("output", "recognized"))

    graph = Graph()
    config = {"architectures": ["ViTForImageClassification"], "model_type": "vit", "problem_type": "regression"}
    row = ("logits", features(graph, 5), [1, 5])
    make("refused-regression", graph, [row], {"config.json": config}, refused="problem_type = regression")

    graph = Graph()
    row = features(graph, 24 * 257)
    tokens = graph.op("Reshape", row, graph.const([1, 257, 24], np.int64))
    outputs = [("last_hidden_state", tokens, [1, 257, 24]), ("pooler_output", features(graph, 24), [1, 24])]
    make("dinov2", graph, outputs, **encoder("pooler_output", "assumed", ignored=1, names_decide=True))

    graph = Graph()
    row = features(graph, 100)
    unit = graph.op("Div", row, graph.op("ReduceL2", row, axes=[1], keepdims=1))
    make("face-embedding", graph, [("683", unit, [1, 100])], **encoder("683", "assumed"))

    graph = Graph()
    pooled = graph.op("Mul", features(graph, 440, "Relu"), graph.const(5.0))
    make("pooled-features", graph, [("output", pooled, [1, 440])], **encoder("output", "assumed"))

    graph = Graph()
    row = features(graph, 384)
    make("encoder-384-numbers", graph, [("output", row, [1, 384])], **encoder("output", "assumed"))

    graph = Graph()
    box = features(graph, 4, "Sigmoid")
    make("refused-box-regressor", graph, [("output", box, [1, 4])], refused="could be a box")

    graph = Graph()
    pixels = graph.op("Add", features(graph, 6), graph.const([[20, 31, 210, 40, 12, 180]]))
    make("refused-pixels", graph, [("output", pixels, [1, 6])], refused="nor plausible logits")


def classifiers():
    """The class scores are found among features, and as many names as numbers show that numbers are scores."""
    card = {"task": "classification", "output": {"classification": {"values": "logits"}}}
    graph = Graph()
    names = "\n".join(f"person {number}" for number in range(512)) + "\n"
    pixels = ["channels", "divide_by", "mean", "std", "resize", "interpolation"]
    pixels = [f"input.{field}" for field in pixels]
    make(
        "as-many-names-as-numbers", graph, [("output", features(graph, 512), [1, 512])], {"labels.txt": names},
        card=card, recognized=["task", "labels"], assumed=["output.classification.values", *pixels], ignored=0,
    )

    graph = Graph()
    row, pooled, logits = features(graph, 24 * 50), features(graph, 768), features(graph, 7)
    tokens = graph.op("Reshape", row, graph.const([1, 50, 24], np.int64))
    make(
        "features-and-logits",
        graph,
        [("last_hidden_state", tokens, [1, 50, 24]), ("pooler_output", pooled, [1, 768]), ("logits", logits, [1, 7])],
        card=card, recognized=["output.classification.name"],
        assumed=["task", "labels", "output.classification.values", *pixels], ignored=2,
    )


def landmarks():
    """PFLD's coordinates of a face from 0 to 1 could be the scores of classes that do not exclude one another."""
    graph = Graph()
    points = features(graph, 136, "Sigmoid")
    make("refused-landmarks", graph, [("output", points, [1, 136])], refused="too high for scores")

    # MediaPipe's in pixels and in meters.
    graph = Graph()
    pixels = graph.op("Mul", features(graph, 63, "Sigmoid"), graph.const(224.0))
    outputs = [("Identity", pixels, [1, 63]), ("Identity_1", features(graph, 63), [1, 63])]
    make("refused-landmarks-twice", graph, outputs, refused="nor plausible logits")


def unusual_lengths():
    """Embeddings as long as ImageNet's classes, and one that is too long."""
    graph = Graph()
    row = features(graph, 1000)
    make("embedding-1000", graph, [("embedding", row, [1, 1000])], **encoder("embedding", "assumed", names_decide=True))

    graph = Graph()
    row = features(graph, 1000)
    unit = graph.op("Div", row, graph.op("ReduceL2", row, axes=[1], keepdims=1))
    make("unit-vector-1000", graph, [("output", unit, [1, 1000])], **encoder("output", "assumed"))

    graph = Graph()
    row = graph.op("Tile", features(graph, 96), graph.const([1, 86], np.int64))
    make("refused-8256-numbers", graph, [("embedding", row, [1, 8256])], refused="8 to 8192", names_decide=True)


def classifiers_like_encoders():
    """Files, metadata, the name of an output, or its values say more than a typical length."""
    card = {"task": "classification", "output": {"classification": {"values": "logits"}}}
    config = {"architecture": "resnet18", "num_classes": 512, "num_features": 512, "pretrained_cfg": {"num_classes": 512}}
    fields = ["channels", "divide_by", "mean", "std", "resize", "interpolation"]
    plain = ["labels", *(f"input.{field}" for field in fields)]
    values = "output.classification.values"
    graph = Graph()
    make(
        "timm-512-classes", graph, [("output", features(graph, 512), [1, 512])], {"config.json": config},
        card=card, recognized=["task"], assumed=[values, *plain], ignored=0,
    )

    graph = Graph()
    make(
        "task-in-metadata", graph, [("output", features(graph, 512), [1, 512])], metadata={"task": "classification"},
        card=card, recognized=["task"], assumed=[values, *plain], ignored=0,
    )

    graph = Graph()
    outputs = [("features", features(graph, 1000), [1, 1000]), ("class_scores", features(graph, 384), [1, 384])]
    make(
        "scores-by-name", graph, outputs,
        card=card, recognized=["output.classification.name"], assumed=["task", values, *plain], ignored=1, names_decide=True,
    )

    graph = Graph()
    row = graph.op("LogSoftmax", features(graph, 512), axis=1)
    make(
        "log-softmax", graph, [("output", row, [1, 512])],
        card=card, recognized=["task", values], assumed=plain, ignored=0,
    )


def tokens_like_boxes():
    """Tokens whose values could be boxes and scores."""
    graph = Graph()
    patches = graph.op("Reshape", features(graph, 256 * 8, "Sigmoid"), graph.const([1, 256, 8], np.int64))
    length = graph.op("ReduceL2", patches, axes=[2], keepdims=1)
    tokens = [("last_hidden_state", graph.op("Div", patches, length), [1, 256, 8])]
    expected = encoder("last_hidden_state", "assumed", names_decide=True)
    expected["assumed"].append("output.embedding.tokens")
    make("tokens-like-boxes", graph, tokens, **expected)


if __name__ == "__main__":
    embeddings_and_regressions()
    classifiers()
    landmarks()
    unusual_lengths()
    classifiers_like_encoders()
    tokens_like_boxes()
