"""YOLOX, from a package that contains its code: images are read like in Megvii's own demo (OpenCV, so BGR)."""

import functools

from .common import Case, detections, export, onnx_session, settle, spread


def make(folder, images, size, config_name="yolox_nano", decoded=False):
    import cv2
    import torch
    from torch import nn
    from yolox.config import YoloxConfig
    from yolox.data import ValTransform
    from yolox.models.network_blocks import SiLU
    from yolox.utils import postprocess, replace_module

    torch.manual_seed(0)
    config = YoloxConfig.get_named_config(config_name)
    config.test_size = (size, size)
    model = config.get_model().eval()
    model = replace_module(model, nn.SiLU, SiLU)
    transform = ValTransform(legacy=False)
    read = [cv2.imread(str(image)) for image in images]
    batch = torch.stack([torch.from_numpy(transform(image, None, config.test_size)[0]) for image in read])
    settle(model, batch)
    head = model.head
    spread(list(head.reg_preds), lambda: model(batch), deviation=0.15, mean=0.7)
    spread(list(head.obj_preds), lambda: model(batch), deviation=1.0)
    spread(list(head.cls_preds), lambda: model(batch), above=(30, 0.0, 4.0))
    head.decode_in_inference = decoded
    export(model, (batch[:1],), folder, ["images"], ["output"], opset=11)
    session = onnx_session(folder)
    predictions = {}
    for at, image in enumerate(images):
        height, width = read[at].shape[:2]
        ratio = min(size / height, size / width)
        out = torch.from_numpy(session.run(None, {"images": batch[at : at + 1].numpy()})[0])
        if not decoded:
            out = head.decode_outputs(out, dtype=out.type())
        found = postprocess(out, config.num_classes, 0.25, config.nmsthre)[0]
        found = torch.zeros(0, 7) if found is None else found
        predictions[image.name] = detections(found[:, :4] / ratio, found[:, 4] * found[:, 5], found[:, 6])
    return predictions


def case(name, family, **options):
    return Case(name, family, "yolox", "pixeltable-yolox", functools.partial(make, **options))


CASES = [
    case("yolox-nano", "YOLOX", size=416),
    case("yolox-nano-decoded", "YOLOX --decode-in-inference", size=416, decoded=True),
    case("yolox-tiny-640", "YOLOX tiny, 640", size=640, config_name="yolox_tiny"),
]
