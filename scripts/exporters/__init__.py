"""Exports of official packages, for try-exporters. Heavy packages are imported inside functions: the list of cases is
read without them."""

from . import (
    keras_cases,
    timm_cases,
    torchvision_cases,
    transformers_cases,
    ultralytics_cases,
    yolov5_cases,
    yolox_cases,
)

MODULES = [ultralytics_cases, yolov5_cases, yolox_cases, torchvision_cases, transformers_cases, timm_cases, keras_cases]
CASES = {case.name: case for module in MODULES for case in module.CASES}
