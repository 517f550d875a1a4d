"""Opens an exported Pascal VOC folder with supervision."""

import sys

import supervision
from supervised import print_dataset

folder = sys.argv[1]
print_dataset(supervision.DetectionDataset.from_pascal_voc(f"{folder}/JPEGImages", f"{folder}/Annotations"))
