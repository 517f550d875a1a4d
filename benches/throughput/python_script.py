"""Classifies a folder of images in the common way: Pillow, NumPy, onnxruntime, one image at a time.

usage: python python_script.py MODEL.onnx lite0|resnet FOLDER COUNT OUT.jsonl
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from PIL import Image

model, recipe, folder, count, out = sys.argv[1:]
if recipe == "lite0":
    mean, std = np.float32([127, 127, 127]), np.float32([128, 128, 128])
else:
    mean = np.float32([0.485, 0.456, 0.406]) * 255
    std = np.float32([0.229, 0.224, 0.225]) * 255
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
with open(out, "w") as lines:
    for path in sorted(Path(folder).glob("*.jpg"))[: int(count)]:
        image = Image.open(path).convert("RGB")
        width, height = image.size
        ratio = 256 / min(width, height)
        image = image.resize((max(256, int(width * ratio)), max(256, int(height * ratio))), Image.BILINEAR)
        left, top = (image.width - 224) // 2, (image.height - 224) // 2
        image = image.crop((left, top, left + 224, top + 224))
        tensor = (np.asarray(image, np.float32) - mean) / std
        logits = session.run(None, {name: tensor.transpose(2, 0, 1)[None]})[0][0]
        scores = np.exp(logits - logits.max())
        scores /= scores.sum()
        best = np.argsort(scores)[::-1][:5]
        classes = [{"index": int(index), "score": float(scores[index])} for index in best]
        lines.write(json.dumps({"uri": str(path), "classes": classes}) + "\n")
