"""How many of the ten nearest boxes stay when vectors are reduced as in src/project/embeddings/form.rs, with the SSD of
this repository.

usage: python recall.py FOLDER [COUNT]        (pip install numpy onnx onnxruntime pillow scikit-learn)
FOLDER contains JPEG images; random crops of COUNT (2000) of them are used, so that boxes differ in size and position.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from PIL import Image
from sklearn.decomposition import PCA

MAP = "BoxPredictor_0/ClassPredictor_depthwise/Relu6:0"
FIT, NEAREST, MIN_SCORE = 16_384, 10, 0.2
folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
model = onnx.load(pathlib.Path(__file__).parents[2] / "models/ssd-mobilenet-coco/model.onnx")
model.graph.output.append(helper.make_tensor_value_info(MAP, TensorProto.FLOAT, None))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
random = np.random.default_rng(1)
vectors = []
for path in sorted(folder.glob("*.jpg"))[:count]:
    image = Image.open(path).convert("RGB")
    size = np.array(image.size)
    corner = random.uniform(0, 0.4, 2) * size
    image = image.crop((*corner.astype(int), *(corner + random.uniform(0.5, 0.6, 2) * size).astype(int)))
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    boxes, scores, map = session.run(["boxes", "scores", MAP], {session.get_inputs()[0].name: np.asarray(image)[None]})
    boxes, scores, map = boxes.reshape(-1, 4), scores.reshape(-1), map.reshape(map.shape[-3:])
    cells = np.clip(boxes / np.tile(image.size, 2) * map.shape[-1], 0, map.shape[-1])
    for (x1, y1, x2, y2), score in zip(cells, scores):
        if score >= MIN_SCORE and x2 > x1 and y2 > y1:
            columns = map[:, int(y1) : max(int(np.ceil(y2)), int(y1) + 1), int(x1) : max(int(np.ceil(x2)), int(x1) + 1)]
            vectors.append(columns.mean(axis=(1, 2)))
vectors = np.array(vectors, np.float32)
print(f"{len(vectors)} boxes of {count} images, {vectors.shape[1]} numbers")


def nearest(rows, queries):
    rows = rows - rows.mean(axis=0)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    similar = rows[queries] @ rows.T
    similar[np.arange(len(queries)), queries] = -2
    return np.argsort(-similar, axis=1)[:, :NEAREST]


queries = random.choice(len(vectors), min(500, len(vectors)), replace=False)
expected = nearest(vectors, queries)
fitted = PCA(128, svd_solver="full").fit(vectors[:FIT])
for dims in (16, 24, 32, 48, 64, 96, 128):
    reduced = (vectors - fitted.mean_) @ fitted.components_[:dims].T
    scale = np.abs(reduced).max(axis=1, keepdims=True) / 127
    eight = np.round(reduced / np.maximum(scale, 1e-12)) * scale
    share = [np.mean([len(np.intersect1d(a, b)) for a, b in zip(expected, nearest(x, queries))]) / NEAREST for x in (reduced, eight)]
    explained = fitted.explained_variance_ratio_[:dims].sum()
    print(f"{dims} directions, {explained:.1%} of the variance: recall@10 {share[0]:.3f}, with 8 bits {share[1]:.3f}")
