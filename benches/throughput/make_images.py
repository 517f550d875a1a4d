"""Makes JPEGs of 1024x768 from the sample images by crop, flip and scale; the same ones on every computer.

usage: python make_images.py FOLDER COUNT
"""
import random
import sys
from pathlib import Path

from PIL import Image, ImageOps

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"
SIZE = (1024, 768)


def make(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.glob("*.jpg"))) == count:
        return
    for old in folder.glob("*.jpg"):
        old.unlink()
    photos = [
        ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        for path in sorted(SAMPLES.iterdir())
        if path.suffix in (".jpg", ".png")
    ]
    choice = random.Random(20261121)
    for number in range(count):
        photo = photos[number % len(photos)]
        width, height = photo.size
        share = choice.uniform(0.5, 1.0)
        crop_width = share * min(width, height * SIZE[0] / SIZE[1])
        crop_height = crop_width * SIZE[1] / SIZE[0]
        left = choice.uniform(0, width - crop_width)
        top = choice.uniform(0, height - crop_height)
        image = photo.resize(SIZE, Image.BICUBIC, (left, top, left + crop_width, top + crop_height))
        if choice.random() < 0.5:
            image = ImageOps.mirror(image)
        image.save(folder / f"{number:04}.jpg", quality=88)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
