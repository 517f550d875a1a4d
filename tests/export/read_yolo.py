"""Opens an exported YOLO folder with supervision."""

import sys

import supervision
from supervised import print_dataset

folder = sys.argv[1]
print_dataset(supervision.DetectionDataset.from_yolo(f"{folder}/images", f"{folder}/labels", f"{folder}/data.yaml"))
