"""Runs a model on prepared tensors: nothing is read, decoded or written.

usage: python onnxruntime_alone.py MODEL.onnx COUNT
"""

import sys

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
tensors = np.random.default_rng(1).normal(0, 1, (16, 1, 3, 224, 224)).astype(np.float32)
for number in range(int(sys.argv[2])):
    session.run(None, {name: tensors[number % 16]})
