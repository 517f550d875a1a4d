"""transformers: detectors and classifiers with Optimum's names of inputs and outputs, and
`config.json` and `preprocessor_config.json` next to the model."""

import functools
import types

from .common import Case, classes, detections, export, onnx_session, settle, spread

# Optimum's, with a dynamic image size.
FREE = {"pixel_values": {0: "batch_size", 2: "height", 3: "width"}}
FREE_BATCH = {"pixel_values": {0: "batch_size"}}


def plain(model, names):
    """A module whose outputs are plain tensors, in this order."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, pixel_values):
            found = self.model(pixel_values=pixel_values)
            return tuple(found[name] for name in names)

    return Plain().eval()


def make_detector(folder, images, build, free_size, threshold):
    import torch
    from PIL import Image

    torch.manual_seed(0)
    model, processor, prepare = build()
    model.eval()
    count = model.config.num_labels
    model.config.id2label = {index: f"thing {index}" for index in range(count)}
    model.config.label2id = {name: index for index, name in model.config.id2label.items()}
    opened = [Image.open(image).convert("RGB") for image in images]
    inputs = [processor(images=image, return_tensors="pt")["pixel_values"] for image in opened]
    prepare(model, inputs)
    dynamic = {**(FREE if free_size else FREE_BATCH), "logits": {0: "batch_size"}, "pred_boxes": {0: "batch_size"}}
    names = ["logits", "pred_boxes"]
    export(plain(model, names), (inputs[0],), folder, ["pixel_values"], names, dynamic)
    model.config.save_pretrained(folder)
    processor.save_pretrained(folder)
    session = onnx_session(folder)
    predictions = {}
    for image, opened_image, tensor in zip(images, opened, inputs, strict=True):
        logits, boxes = (torch.from_numpy(out) for out in session.run(None, {"pixel_values": tensor.numpy()}))
        found = processor.post_process_object_detection(
            types.SimpleNamespace(logits=logits, pred_boxes=boxes), threshold=threshold,
            target_sizes=[(opened_image.height, opened_image.width)])[0]
        predictions[image.name] = detections(found["boxes"], found["scores"], found["labels"], model.config.id2label)
    return predictions


def prepare_softmax(model, inputs):
    import torch

    # The first image alone: sizes differ.
    settle(model, inputs[0])
    # Without this, all queries find the same boxes.
    for name, parameter in model.named_parameters():
        if name.endswith(("query_position_embeddings.weight", "detection_tokens")):
            torch.nn.init.normal_(parameter, std=2.0)

    def forward():
        for tensor in inputs:
            model(pixel_values=tensor)

    scores = model.class_labels_classifier
    spread([getattr(scores, "layers", [scores])[-1]], forward, deviation=3.0)
    spread([model.bbox_predictor.layers[-1]], forward, deviation=1.0, mean=-0.5)


def prepare_sigmoid(model, inputs):
    # The first image alone: sizes differ.
    settle(model, inputs[0])

    def forward():
        for tensor in inputs:
            model(pixel_values=tensor)

    heads = model if hasattr(model, "class_embed") else model.model.decoder
    spread([heads.class_embed[-1]], forward, above=(100, -1.1, 4.0))
    spread([heads.bbox_embed[-1].layers[-1]], forward, deviation=0.7)


def small_resnet(out_features):
    from transformers import ResNetConfig

    return ResNetConfig(embedding_size=64, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic",
                        out_features=out_features)


def detr():
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessorPil

    config = DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                        backbone_config=small_resnet(["stage4"]), encoder_layers=2, decoder_layers=2, num_labels=91)
    return DetrForObjectDetection(config), DetrImageProcessorPil(), prepare_softmax


def yolos():
    from transformers import YolosConfig, YolosForObjectDetection, YolosImageProcessorPil

    config = YolosConfig(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768,
                         image_size=[512, 864], num_labels=91)
    processor = YolosImageProcessorPil(size={"height": 512, "width": 864}, do_pad=False)
    return YolosForObjectDetection(config), processor, prepare_softmax


def rt_detr(version=""):
    import transformers

    backbone = transformers.RTDetrResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2],
                                               layer_type="basic", out_features=["stage2", "stage3", "stage4"])
    config = getattr(transformers, f"RTDetr{version}Config")(
        backbone_config=backbone, encoder_in_channels=[128, 256, 512], decoder_layers=3, num_labels=80)
    model = getattr(transformers, f"RTDetr{version}ForObjectDetection")(config)
    return model, transformers.RTDetrImageProcessorPil(), prepare_sigmoid


def d_fine():
    from transformers import DFineConfig, DFineForObjectDetection, RTDetrImageProcessorPil

    config = DFineConfig(decoder_layers=3, num_labels=80)
    return DFineForObjectDetection(config), RTDetrImageProcessorPil(), prepare_sigmoid


def deformable_detr():
    from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, DeformableDetrImageProcessorPil

    config = DeformableDetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                                  backbone_config=small_resnet(["stage2", "stage3", "stage4"]), encoder_layers=2,
                                  decoder_layers=2, num_labels=91)
    processor = DeformableDetrImageProcessorPil(size={"height": 640, "width": 640}, do_pad=False)
    return DeformableDetrForObjectDetection(config), processor, prepare_sigmoid


def make_classifier(folder, images, build):
    import torch
    from PIL import Image

    torch.manual_seed(0)
    model, processor = build()
    model.eval()
    model.config.id2label = {index: f"thing {index}" for index in range(model.config.num_labels)}
    model.config.label2id = {name: index for index, name in model.config.id2label.items()}
    opened = [Image.open(image).convert("RGB") for image in images]
    batch = torch.cat([processor(images=image, return_tensors="pt")["pixel_values"] for image in opened])
    settle(model, batch)
    last = [module for module in model.classifier.modules() if isinstance(module, torch.nn.Linear)][-1]
    spread([last], lambda: model(pixel_values=batch), deviation=3.0)
    export(plain(model, ["logits"]), (batch[:1],), folder, ["pixel_values"], ["logits"],
           {**FREE_BATCH, "logits": {0: "batch_size"}})
    model.config.save_pretrained(folder)
    processor.save_pretrained(folder)
    session = onnx_session(folder)
    predictions = {}
    for at, image in enumerate(images):
        logits = session.run(None, {"pixel_values": batch[at : at + 1].numpy()})[0]
        predictions[image.name] = classes(torch.from_numpy(logits)[0].softmax(0))
    return predictions


def small(name, processor, size=None, processor_options=None, **options):
    """A small model of a family, with the family's image processor."""
    import transformers

    config = getattr(transformers, f"{name}Config")(num_labels=100, **options)
    kind = getattr(transformers, f"{name}ForImageClassification")
    return kind(config), getattr(transformers, f"{processor}ImageProcessorPil")(**(processor_options or {}))


def classifier(title, name, processor, **options):
    build = functools.partial(small, name, processor, **options)
    return Case(f"transformers-{title}", f"transformers {name}", "torch", "transformers",
                functools.partial(make_classifier, build=build))


def detector(name, build, family, free_size=False, threshold=0.25):
    make = functools.partial(make_detector, build=build, free_size=free_size, threshold=threshold)
    return Case(f"transformers-{name}", f"transformers {family}", "torch", "transformers", make, min_score=threshold)


HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
CASES = [
    detector("detr", detr, "DETR", free_size=True),
    detector("yolos", yolos, "YOLOS"),
    detector("deformable_detr", deformable_detr, "Deformable DETR"),
    detector("rt_detr", rt_detr, "RT-DETR"),
    detector("rt_detr_v2", functools.partial(rt_detr, "V2"), "RT-DETRv2"),
    detector("d_fine", d_fine, "D-FINE"),
    classifier("vit", "ViT", "ViT", hidden_size=192, num_hidden_layers=3, num_attention_heads=3,
               intermediate_size=768),
    classifier("deit", "DeiT", "DeiT", hidden_size=192, num_hidden_layers=3, num_attention_heads=3,
               intermediate_size=768),
    classifier("convnext", "ConvNext", "ConvNext", depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 128, 256],
               processor_options={"size": {"shortest_edge": 224}}),
    classifier("convnext-384", "ConvNext", "ConvNext", depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 128, 256]),
    classifier("resnet", "ResNet", "ConvNext", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512],
               layer_type="basic", embedding_size=64,
               processor_options={"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3}),
    # With their usual range, the activations vanish next to the constant added by batch normalization.
    classifier("mobilenet_v2", "MobileNetV2", "MobileNetV2", initializer_range=0.2),
    classifier("efficientnet", "EfficientNet", "EfficientNet", width_coefficient=1.0, depth_coefficient=1.0,
               hidden_dim=1280, image_size=224, initializer_range=0.2,
               processor_options={"size": {"height": 224, "width": 224}}),
    classifier("mobilevit", "MobileViT", "MobileViT",
               processor_options={"size": {"shortest_edge": 288}, "crop_size": {"height": 256, "width": 256}}),
]
