"""Makes an image of 20,000 x 15,000 pixels from a photo: every tile has a different crop, rotation and brightness.

    make_image.py PHOTO OUT.jpg|OUT.png
"""

import random
import sys

from PIL import Image

SIZE = (20_000, 15_000)
TILE = 500


def main() -> None:
    Image.MAX_IMAGE_PIXELS = None
    photo = Image.open(sys.argv[1]).convert("RGB")
    random.seed(1)
    image = Image.new("RGB", SIZE)
    side = min(photo.size) * 3 // 4
    for top in range(0, SIZE[1], TILE):
        for left in range(0, SIZE[0], TILE):
            x = random.randrange(photo.width - side)
            y = random.randrange(photo.height - side)
            tile = photo.crop((x, y, x + side, y + side)).resize((TILE, TILE), Image.BILINEAR)
            tile = tile.rotate(90 * random.randrange(4)).point(
                lambda value, factor=random.uniform(0.6, 1.2): min(255, int(value * factor))
            )
            image.paste(tile, (left, top))
    image.save(sys.argv[2], quality=90)


main()
