"""Resized images by Pillow and OpenCV, as hashes.

usage: python make_resize.py > resize.json
(pip install numpy==2.4.6 pillow==12.0.0 opencv-python-headless==5.0.0.93)
Newer versions of Pillow compute some sizes rows first, which rounds differently (12.2: images more than 100 times
as high as wide, 13: also those that lose more than twice as many rows as columns).
Needs an x86-64 CPU: on others, OpenCV computes INTER_CUBIC differently, as it does for sides below 4 pixels.
OpenCV 4.11 and 4.13 return the same. INTER_CUBIC differs in about 3 of a million values, so its images are small, and
one with such a value is omitted.
"""

import hashlib
import json
import random
import sys

import cv2
import numpy as np
from PIL import Image

PILLOW = {
    "pillow-bilinear": Image.Resampling.BILINEAR,
    "pillow-bicubic": Image.Resampling.BICUBIC,
    "pillow-lanczos": Image.Resampling.LANCZOS,
    "pillow-nearest": Image.Resampling.NEAREST,
}
OPENCV = {"opencv-linear": cv2.INTER_LINEAR, "opencv-cubic": cv2.INTER_CUBIC}
PAIRS = [
    [(1, 1), (5, 4)], [(2, 1), (1, 7)], [(1, 200), (7, 3)], [(200, 1), (3, 7)], [(20000, 1), (1, 1)],
    [(1, 20000), (9, 40)], [(3, 2000), (64, 5)], [(3, 3), (300, 2)], [(64, 48), (32, 24)], [(64, 48), (32, 25)],
    [(63, 48), (32, 24)], [(32, 24), (64, 48)], [(30, 60), (10, 20)], [(64, 48), (16, 12)], [(31, 17), (31, 40)],
    [(31, 17), (50, 17)], [(120, 90), (96, 96)], [(100, 75), (64, 48)], [(97, 61), (96, 60)], [(96, 60), (97, 61)],
    [(640, 480), (224, 224)], [(500, 375), (341, 256)], [(4, 4), (5, 5)], [(5, 4), (4, 5)], [(255, 7), (254, 9)],
]  # fmt: skip
RANDOM_PAIRS = 60
CUBIC_WITH_A_TIE = [(64, 51), (5, 16)]


def noise(width, height):
    """The image of the same name in `src/vision/resize.rs`."""
    state, levels = 12345, bytearray()
    for _ in range(width * height * 3):
        state = (state * 1664525 + 1013904223) % 2**32
        levels.append(state >> 24)
    return np.frombuffer(levels, np.uint8).reshape(height, width, 3)


def is_for_cubic(from_, to):
    return min(from_) >= 4 and to[0] * to[1] < 2000 and [from_, to] != CUBIC_WITH_A_TIE


def resized(image, to):
    for name, filter in PILLOW.items():
        yield name, np.asarray(Image.fromarray(image).resize(to, filter))
    for name, flag in OPENCV.items():
        if name == "opencv-linear" or is_for_cubic((image.shape[1], image.shape[0]), to):
            yield name, cv2.resize(image, to, interpolation=flag)


if __name__ == "__main__":
    chosen = random.Random(1)
    side = lambda: chosen.randint(1, chosen.choice([8, 40, 90]))
    pairs = PAIRS + [[(side(), side()), (side(), side())] for _ in range(RANDOM_PAIRS)]
    cases = [
        {"from": from_, "to": to, "interpolation": name, "sha256": hashlib.sha256(levels.tobytes()).hexdigest()}
        for from_, to in pairs
        for name, levels in resized(noise(*from_), to)
    ]
    sys.stdout.write("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")
