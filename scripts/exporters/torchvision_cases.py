"""torchvision: classifiers with the transforms of their weights, and detectors, which resize inside the graph."""

import functools

from .common import Case, classes, detections, export, onnx_session, settle, short_side_crop, spread, tensors


def make_classifier(folder, images, name, weights, last, by_default=False):
    import torch
    import torchvision
    from PIL import Image

    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    transforms = torchvision.models.get_model_weights(name)[weights].transforms()
    batch = torch.stack([transforms(Image.open(image).convert("RGB")) for image in images])
    settle(model, batch)
    spread([model.get_submodule(last)], lambda: model(batch), deviation=3.0)
    if by_default:
        # Weights go to model.onnx.data, and the batch is fixed.
        torch.onnx.export(model, (batch[:1],), str(folder / "model.onnx"))
    else:
        export(model, batch[:1], folder, ["input"], ["output"], {"input": {0: "batch"}, "output": {0: "batch"}})
    session = onnx_session(folder)
    predictions = {}
    for at, image in enumerate(images):
        logits = session.run(None, {session.get_inputs()[0].name: batch[at : at + 1].numpy()})[0][0]
        predictions[image.name] = classes(torch.from_numpy(logits).softmax(0))
    return predictions


def make_detector(folder, images, name, outputs):
    import torch
    import torchvision
    from PIL import Image
    from torchvision.transforms.functional import to_tensor

    torch.manual_seed(0)
    # In the input size of the models.
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None).eval()
    sizes = model.transform.fixed_size or (model.transform.min_size[-1],) * 2
    normalized = tensors(images, *sizes)
    settle(model.backbone, (normalized - 0.45) / 0.225)
    inputs = [to_tensor(Image.open(image).convert("RGB")) for image in images]
    with_boxes(model, inputs)
    export(model, ([inputs[0]],), folder, ["input"], outputs, {"input": {1: "height", 2: "width"}})
    # Predicted by the graph, because its resizing differs from torch's for some sizes, and boxes of a random network
    # then differ by hundreds of pixels. The test still covers the input tensor and the reading of the outputs.
    session = onnx_session(folder)
    predictions = {}
    for image, tensor in zip(images, inputs, strict=True):
        found = dict(zip(outputs, session.run(outputs, {"input": tensor.numpy()}), strict=True))
        predictions[image.name] = detections(found["boxes"], found["scores"], found["labels"])
    return predictions


def with_boxes(model, inputs):
    """A few hundred boxes per image above a score of 0.05, the models' own threshold."""

    def forward():
        for tensor in inputs:
            model([tensor])

    head = getattr(model, "roi_heads", None)
    if head is not None:
        spread([model.rpn.head.cls_logits], forward, deviation=2.0)
        spread([model.rpn.head.bbox_pred], forward, deviation=0.3)
        spread([head.box_predictor.cls_score], forward, deviation=1.8)
        spread([head.box_predictor.bbox_pred], forward, deviation=1.0)
        return
    scores, boxes = model.head.classification_head, model.head.regression_head
    if hasattr(scores, "module_list"):
        spread_each(last_layers(boxes.module_list), forward, 1.0)
        spread_each(last_layers(scores.module_list), forward, 1.8)
        return
    spread([boxes.bbox_reg], forward, deviation=0.5, mean=1.0 if hasattr(boxes, "bbox_ctrness") else 0.0)
    if hasattr(boxes, "bbox_ctrness"):
        spread([boxes.bbox_ctrness], forward, deviation=1.0)
    spread([scores.cls_logits], forward, deviation=1.0, mean=-6.0)


def last_layers(modules):
    import torch

    return [module if isinstance(module, torch.nn.Conv2d) else module[-1] for module in modules]


def spread_each(layers, forward, deviation):
    for layer in layers:
        spread([layer], forward, deviation=deviation)


def classifier(name, weights="IMAGENET1K_V1", last="fc", settings=()):
    make = functools.partial(make_classifier, name=name, weights=weights, last=last)
    return Case(f"torchvision-{name}", f"torchvision {name}", "torch", "torchvision", make, settings=settings)


def detector(name, outputs, limit=100):
    return Case(f"torchvision-{name}", f"torchvision {name}", "torch", "torchvision",
                functools.partial(make_detector, name=name, outputs=outputs), min_score=0.05, clipped=True,
                limit=limit)


BY_DEFAULT = functools.partial(make_classifier, name="resnet18", weights="IMAGENET1K_V1", last="fc", by_default=True)
CASES = [
    Case("torchvision-resnet18-data", "torchvision resnet18, weights in a second file", "torch", "torchvision",
         BY_DEFAULT),
    classifier("resnet18"),
    classifier("resnet50", "IMAGENET1K_V2", settings=(short_side_crop(232, 224),)),
    classifier("efficientnet_b0", last="classifier.1", settings=("input.interpolation=pillow-bicubic",)),
    classifier("convnext_tiny", last="classifier.2", settings=(short_side_crop(236, 224),)),
    classifier("vit_b_16", last="heads.head"),
    classifier("inception_v3"),
    detector("fasterrcnn_mobilenet_v3_large_fpn", ["boxes", "labels", "scores"]),
    detector("fasterrcnn_mobilenet_v3_large_320_fpn", ["boxes", "labels", "scores"]),
    detector("retinanet_resnet50_fpn", ["boxes", "scores", "labels"], limit=300),
    detector("fcos_resnet50_fpn", ["boxes", "scores", "labels"]),
    detector("ssdlite320_mobilenet_v3_large", ["boxes", "scores", "labels"], limit=300),
    detector("ssd300_vgg16", ["boxes", "scores", "labels"], limit=200),
]
