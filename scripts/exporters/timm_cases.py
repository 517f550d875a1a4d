"""timm: classifiers with `config.json` next to the model, as timm writes it for the Hugging Face Hub."""

import functools

from .common import Case, classes, onnx_session, settle, spread


def make(folder, images, name):
    import timm
    import torch
    from PIL import Image
    from timm.models._hub import save_config_for_hf
    from timm.utils.onnx import onnx_export

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, exportable=True).eval()
    config = timm.data.resolve_model_data_config(model)
    transform = timm.data.create_transform(**config, is_training=False)
    batch = torch.stack([transform(Image.open(image).convert("RGB")) for image in images])
    settle(model, batch)
    spread([model.get_classifier()], lambda: model(batch), deviation=3.0)
    onnx_export(model, str(folder / "model.onnx"), batch[:1], batch_size=1)
    save_config_for_hf(model, str(folder / "config.json"))
    session = onnx_session(folder)
    name_of_input = session.get_inputs()[0].name
    predictions = {}
    for at, image in enumerate(images):
        scores = session.run(None, {name_of_input: batch[at : at + 1].numpy()})[0]
        predictions[image.name] = classes(torch.from_numpy(scores)[0].softmax(0))
    return predictions


MODELS = [
    "resnet18.a1_in1k",
    "resnet50d.ra2_in1k",
    "mobilenetv3_large_100.ra_in1k",
    "tf_efficientnet_lite0.in1k",
    "convnext_atto.d2_in1k",
    "vit_tiny_patch16_224.augreg_in21k_ft_in1k",
    "deit_tiny_patch16_224.fb_in1k",
    "inception_v3.tv_in1k",
    "mobilevit_xxs.cvnets_in1k",
]
CASES = [Case(f"timm-{name}", f"timm {name}", "torch", "timm", functools.partial(make, name=name)) for name in MODELS]
