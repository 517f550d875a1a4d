"""Compares the handler's decoder with the expected pixels of tests/cases/decode; prints a line per case that
differs.

usage: python check_images.py CODE_FOLDER CASES_FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, sys.argv[1])
import spotcheck_image
from spotcheck_records import Refused

# Unlike Spotcheck, Pillow ignores libjpeg's warnings, and supports TIFF palettes.
READ_HERE = {"jpeg-hole-in-the-data", "tiff-palette"}


def expected_pixels(path):
    header, pixels = path.read_bytes().split(b"\n", 1)
    _, width, height, _ = header.split()
    return np.frombuffer(pixels, np.uint8).reshape(int(height), int(width), 3)


for folder in sorted(Path(sys.argv[2]).iterdir()):
    case = json.loads((folder / "case.json").read_text())
    (image,) = folder.glob("image.*")
    try:
        with spotcheck_image.opened(image.read_bytes()) as opened:
            pixels = np.asarray(opened)
    except Refused as error:
        if "tolerance" in case:
            print(f"{folder.name}: refused: {error}")
        continue
    if "tolerance" not in case:
        if folder.name not in READ_HERE:
            print(f"{folder.name}: read")
        continue
    expected = expected_pixels(folder / "expected.ppm")
    height, width, _ = expected.shape
    if pixels.shape[0] < height or pixels.shape[1] < width:
        print(f"{folder.name}: {pixels.shape} instead of {expected.shape}")
        continue
    difference = np.abs(pixels[:height, :width].astype(int) - expected).max()
    if difference > case["tolerance"]:
        print(f"{folder.name}: a channel differs by {difference}, tolerance {case['tolerance']}")
print("checked")
