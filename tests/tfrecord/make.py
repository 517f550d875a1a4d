"""TFRecord files by a writer independent of Spotcheck, with the same images as files.

usage: python make.py SAMPLES_DIR      (pip install tfrecord==1.14.6 pillow)
Writes photos/ and photos.tfrecord into the folder of this script. The images are those of assets/samples, scaled
to 160 pixels; see its CREDITS.md for licenses. Labels are ImageNet's (from 1, as TensorFlow's own records have them),
boxes were drawn by hand. The last record contains only its image.
"""

import os, sys
from PIL import Image
from tfrecord.writer import TFRecordWriter

HERE = os.path.dirname(os.path.abspath(__file__))
# xmin, ymin, xmax, ymax as fractions of the sides; label of COCO and its name
PHOTOS = {
    "chelsea.png": (282, "tabby cat", [((0.25, 0.0, 0.875, 1.0), 17, "cat")]),
    "china.jpg": (663, "monastery", []),
    "coffee.png": (
        505,
        "coffee mug",
        [((0.25, 0.125, 0.75, 0.625), 47, "cup"), ((0.625, 0.5, 1.0, 0.875), 50, "spoon")],
    ),
    "flower.jpg": (986, "daisy", []),
    "grace_hopper.jpg": (653, "military uniform", [((0.125, 0.0, 0.875, 1.0), 1, "person")]),
    "rocket.jpg": (745, "projectile, missile", []),
}


def main(samples):
    photos = os.path.join(HERE, "photos")
    os.makedirs(photos, exist_ok=True)
    writer = TFRecordWriter(os.path.join(HERE, "photos.tfrecord"))
    names = list(PHOTOS)
    for name in names:
        image = Image.open(os.path.join(samples, name)).convert("RGB")
        image.thumbnail((160, 160))
        path = os.path.join(photos, name)
        image.save(path, quality=80)
        with open(path, "rb") as file:
            encoded = file.read()
        record = {"image/encoded": (encoded, "byte")}
        if name != names[-1]:
            label, text, boxes = PHOTOS[name]
            record["image/filename"] = (name.encode(), "byte")
            record["image/format"] = (name.split(".")[1].encode(), "byte")
            record["image/class/label"] = (label, "int")
            record["image/class/text"] = (text.encode(), "byte")
            for place, side in enumerate(["xmin", "ymin", "xmax", "ymax"]):
                record[f"image/object/bbox/{side}"] = ([box[place] for box, _, _ in boxes], "float")
            record["image/object/class/label"] = ([label for _, label, _ in boxes], "int")
            record["image/object/class/text"] = ([text.encode() for _, _, text in boxes], "byte")
        writer.write(record)
    writer.close()


main(sys.argv[1])
