"""Perceptual hashes of the sample images by ImageHash.

usage: python make.py        (pip install numpy==2.4.6 pillow ImageHash==4.3.2)
Writes gray.u8 (the images and their crops as 32 x 32 gray values) and hashes.json: of each, the hash of the image and
of its mirror image, in hexadecimal.
"""

import json
import pathlib

import imagehash
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent
SIDE = 32

images = []
for path in sorted((HERE / "../../../assets/samples").iterdir()):
    if path.suffix not in (".jpg", ".png"):
        continue
    image = Image.open(path).convert("L")
    width, height = image.size
    for part in (image, image.crop((width // 5, height // 4, width, height))):
        images.append(part.resize((SIDE, SIDE), Image.Resampling.LANCZOS))
hashes = [[str(imagehash.phash(image)), str(imagehash.phash(ImageOps.mirror(image)))] for image in images]
(HERE / "gray.u8").write_bytes(b"".join(image.tobytes() for image in images))
(HERE / "hashes.json").write_text(json.dumps(hashes, indent=0) + "\n")
