"""The position of an image in a model's input by the published rules, for thousands of image sizes, as hashes.

usage: python make_placements.py > placements.json        (needs only Python)
Each rule is implemented here separately: the letterbox of Ultralytics (square and rectangular) and of YOLOX, the sizes
of DETR and YOLOS in transformers, the sizes and crops of its DeiT and of timm's squash, those of MMDetection, of
keras-retinanet and of the ONNX Model Zoo's Faster R-CNN. `python make_placements.py --check`
compares those of transformers and Ultralytics with their own code, if both are installed.
"""

import hashlib
import json
import math
import sys

IMAGES = 3000


def sizes():
    """Like `sizes` in `src/vision/preprocess.rs`."""
    state = 1

    def side(most):
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return 1 + (state >> 8) % most

    for number in range(IMAGES):
        most = (90, 700, 2200, 9000)[number % 4]
        width, height = side(most), side(most)
        # Some rules make longer images 0 pixels wide or high, and fail.
        if max(width, height) <= 20 * min(width, height):
            yield width, height


def ultralytics(width, height, target, stride=None, version="8.4.125"):
    """Resized size, tensor size, left and top, and the factors and the padding for mapping boxes back."""
    gain = min(target[1] / height, target[0] / width)
    resized = round(width * gain), round(height * gain)
    gaps = [side - new for side, new in zip(target, resized)]
    if stride:
        gaps = [gap % stride for gap in gaps]
    left, top = (round(gap / 2 - 0.1) for gap in gaps)
    right, bottom = (round(gap / 2 + 0.1) for gap in gaps)
    tensor = left + resized[0] + right, top + resized[1] + bottom
    gain = min(tensor[1] / height, tensor[0] / width)
    # Boxes know only the tensor, so the resized size is recomputed, which the stride may have changed.
    new = max(round(width * gain), 1), max(round(height * gain), 1)
    if version == "8.4.125":
        scale = width / new[0], height / new[1]
    else:
        scale = 1 / gain, 1 / gain
    if version == "yolov5":
        padding = (tensor[0] - width * gain) / 2, (tensor[1] - height * gain) / 2
    elif version == "8.3":
        padding = round((tensor[0] - width * gain) / 2 - 0.1), round((tensor[1] - height * gain) / 2 - 0.1)
    else:
        padding = round((tensor[0] - new[0]) / 2 - 0.1), round((tensor[1] - new[1]) / 2 - 0.1)
    return resized, tensor, (left, top), scale, padding


def yolox(width, height, target):
    gain = min(target[1] / height, target[0] / width)
    resized = int(width * gain), int(height * gain)
    return resized, target, (0, 0), (1 / gain, 1 / gain), (0, 0)


def mmdetection(width, height, target):
    gain = min(max(target) / max(width, height), min(target) / min(width, height))
    resized = int(width * gain + 0.5), int(height * gain + 0.5)
    return resized, target, (0, 0), (width / resized[0], height / resized[1]), (0, 0)


def stretch_and_crop(width, height, resized, crop, rounding):
    """transformers' DeiT rounds down, timm's squash to the even neighbor."""
    left, top = (rounding((side - inner) / 2) for side, inner in zip(resized, crop))
    # The padding is negative: the tensor starts inside the image.
    return resized, crop, (0, 0), (width / resized[0], height / resized[1]), (-left, -top)


def detr(width, height, shortest, longest, multiple=1):
    least, most = min(width, height), max(width, height)
    raw = shortest
    if most / least * shortest > longest:
        raw = longest * least / most
    short = round(raw)
    if short == least:
        size = width, height
    elif width < height:
        size = short, int(raw * height / width)
    else:
        size = int(raw * width / height), short
    size = tuple(side - side % multiple for side in size)
    return size, size, (0, 0), (width / size[0], height / size[1]), (0, 0)


def faster_rcnn(width, height):
    gain = min(800 / min(width, height), 1333 / max(width, height))
    size = int(width * gain), int(height * gain)
    tensor = tuple(math.ceil(side / 32) * 32 for side in size)
    return size, tensor, (0, 0), (1 / gain, 1 / gain), (0, 0)


def short_side_of_mmcv(width, height, short, long, multiple):
    """mmcv's `rescale_size`, and the padding of MMDetection's `DetDataPreprocessor`."""
    gain = min(long / max(width, height), short / min(width, height))
    size = int(width * gain + 0.5), int(height * gain + 0.5)
    tensor = tuple(math.ceil(side / multiple) * multiple for side in size)
    return size, tensor, (0, 0), (width / size[0], height / size[1]), (0, 0)


def short_side_of_keras_retinanet(width, height, short, long):
    """`compute_resize_scale`, and `cvRound`, with which `cv2.resize` rounds if it gets factors."""
    gain = short / min(width, height)
    if max(width, height) * gain > long:
        gain = long / max(width, height)
    size = round(width * gain), round(height * gain)
    return size, size, (0, 0), (1 / gain, 1 / gain), (0, 0)


def letterbox(width, height, **more):
    return {"letterbox": {"width": width, "height": height, "fill": 114, **more}}


def stretch(width, height, crop_width, crop_height, offset):
    crop = {"width": crop_width, "height": crop_height, "offset": offset}
    return {"stretch": {"width": width, "height": height, "crop": crop}}


def short_side(short, long, multiple=1, **more):
    return {
        "short-side-pad": {"short_side": short, "max_long_side": long, "pad_to_multiple": multiple, **more}
    }


TOP_LEFT = {"position": "top-left", "rounding": "down", "boxes_back": "one-ratio"}
RULES = [
    (letterbox(640, 640), lambda *size: ultralytics(*size, (640, 640))),
    (letterbox(640, 480), lambda *size: ultralytics(*size, (640, 480))),
    (letterbox(640, 640, stride=32), lambda *size: ultralytics(*size, (640, 640), 32)),
    (letterbox(320, 512, stride=64), lambda *size: ultralytics(*size, (320, 512), 64)),
    *(
        (letterbox(*target, boxes_back=back, **more), lambda *size, arguments=(target, *more.values(), version): (
            ultralytics(*size, arguments[0], arguments[1] if len(arguments) > 2 else None, arguments[-1])
        ))
        for back, version in (("one-ratio", "8.4"), ("rounded-padding", "8.3"), ("exact-padding", "yolov5"))
        for target, more in (((640, 480), {}), ((640, 640), {"stride": 32}))
    ),
    (letterbox(416, 416, **TOP_LEFT), lambda *size: yolox(*size, (416, 416))),
    (letterbox(640, 416, **TOP_LEFT), lambda *size: yolox(*size, (640, 416))),
    (
        letterbox(640, 640, position="top-left", rounding="half-up", boxes_back="each-axis"),
        lambda *size: mmdetection(*size, (640, 640)),
    ),
    (stretch(256, 256, 225, 224, "down"), lambda *size: stretch_and_crop(*size, (256, 256), (225, 224), int)),
    (stretch(107, 91, 96, 80, "half-even"), lambda *size: stretch_and_crop(*size, (107, 91), (96, 80), round)),
    (short_side(800, 1333), lambda *size: detr(*size, 800, 1333)),
    (short_side(480, 640), lambda *size: detr(*size, 480, 640)),
    (short_side(512, 1333, cut_to_multiple=16), lambda *size: detr(*size, 512, 1333, 16)),
    (short_side(800, 1333, 32), faster_rcnn),
    (short_side(800, 1333, 32, rounding="half-up"), lambda *size: short_side_of_mmcv(*size, 800, 1333, 32)),
    (short_side(800, 1333, rounding="half-up"), lambda *size: short_side_of_mmcv(*size, 800, 1333, 1)),
    (short_side(800, 1333, rounding="half-even"), lambda *size: short_side_of_keras_retinanet(*size, 800, 1333)),
]


def line(width, height, place):
    resized, tensor, offset, scale, padding = place
    numbers = [width, height, *resized, *tensor, *offset]
    # 0.0 is added for a zero without a sign.
    return " ".join([*map(str, numbers), *(f"{value + 0.0:.6f}" for value in (*scale, *padding))]) + "\n"


def check():
    import numpy as np
    from transformers.image_transforms import get_size_with_aspect_ratio
    from transformers.models.yolos.image_processing_pil_yolos import get_size_with_aspect_ratio_yolos
    from ultralytics.data.augment import LetterBox
    from ultralytics.utils.ops import scale_boxes

    wrong = {}
    for width, height in sizes():
        for name, their, ours in [
            ("detr", get_size_with_aspect_ratio((height, width), 800, 1333), detr(width, height, 800, 1333)),
            ("yolos", get_size_with_aspect_ratio_yolos((height, width), 512, 1333), detr(width, height, 512, 1333, 16)),
        ]:
            if their != ours[0][::-1]:
                wrong.setdefault(name, []).append((width, height, their, ours[0][::-1]))
        for target, stride in (((640, 640), None), ((640, 640), 32)):
            ours = ultralytics(width, height, target, stride)
            if width * height > 10**6:
                continue
            box = LetterBox(target[::-1], auto=bool(stride), stride=stride or 32)
            image = np.zeros((height, width, 3), np.uint8)
            their = box(image=image)
            boxes = np.array([[100.0, 50.0, 300.0, 400.0]])
            back = scale_boxes(their.shape[:2], boxes.copy(), image.shape)
            (_, _), scale, padding = ours[2:]
            mine = np.clip((boxes - padding * 2) * (scale * 2), 0, [width, height, width, height])
            if their.shape[1::-1] != ours[1] or np.abs(back - mine).max() > 1e-3:
                wrong.setdefault(f"letterbox {stride}", []).append((width, height, back.tolist(), mine.tolist()))
    for name, cases in wrong.items():
        print(name, len(cases), cases[:5])
    print("checked")


if __name__ == "__main__":
    if "--check" in sys.argv:
        check()
    else:
        rules = []
        for rule, place in RULES:
            lines = [line(*size, place(*size)) for size in sizes()]
            sha256 = hashlib.sha256("".join(lines).encode()).hexdigest()
            rules.append({"rule": rule, "first": lines[:4], "sha256": sha256})
        json.dump(rules, sys.stdout, indent=1)
        print()
