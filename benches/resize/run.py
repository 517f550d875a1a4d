"""Milliseconds to resize an image: Spotcheck, Pillow and OpenCV in one run, one thread each.

usage: python run.py --spotcheck PATH_OF_THE_BENCH [--rounds 20]

All take turns; the fastest round of each counts, because slower ones are due to the computer.
"""
import argparse
import subprocess
import time

import cv2
import numpy as np
from PIL import Image

SIZES = [((1024, 768), (640, 480)), ((4000, 3000), (640, 480)), ((4000, 3000), (300, 225)), ((500, 375), (640, 480))]
PILLOW = {
    "pillow-bilinear": Image.Resampling.BILINEAR,
    "pillow-bicubic": Image.Resampling.BICUBIC,
    "pillow-nearest": Image.Resampling.NEAREST,
}
OPENCV = {"opencv-linear": cv2.INTER_LINEAR, "opencv-cubic": cv2.INTER_CUBIC}


def fastest_ms(work, rounds):
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        best = min(best, (time.perf_counter() - begun) * 1000)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spotcheck", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    for size, to in SIZES:
        levels = np.random.default_rng(1).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
        image = Image.fromarray(levels)
        theirs, ours = {}, {}
        for _ in range(3):
            for name, filter in PILLOW.items():
                best = fastest_ms(lambda: image.resize(to, filter), options.rounds)
                theirs[name] = min(best, theirs.get(name, best))
            for name, flag in OPENCV.items():
                best = fastest_ms(lambda: cv2.resize(levels, to, interpolation=flag), options.rounds)
                theirs[name] = min(best, theirs.get(name, best))
            command = [options.spotcheck, *map(str, (*size, *to, options.rounds))]
            for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
                name, best = line.split()
                ours[name] = min(float(best), ours.get(name, float(best)))
        for name, best in ours.items():
            sizes = f"{size[0]}x{size[1]} to {to[0]}x{to[1]}"
            print(f"{sizes} {name:16} {best:8.3f} of {theirs[name]:8.3f} ms: {best / theirs[name]:.2f}")


if __name__ == "__main__":
    main()
