"""Checks that the handler of archives reproduces the boxes of each case in tests/cases/detections, and rejects those in
tests/cases/detections_refused.

usage: python check_detections.py HANDLER CASES REFUSED   (folders)
"""
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, sys.argv[1])
from spotcheck_outputs import detections

SCORE_TOLERANCE = 1e-6
# The largest difference of an edge, in pixels.
EDGE_TOLERANCE = 1e-3


def output(written):
    values = [float(value) if isinstance(value, str) else value for value in written["values"]]
    return np.array(values, written["type"]).reshape(written["shape"])


def predictions(case):
    outputs = {name: output(written) for name, written in case["outputs"].items()}
    for index, image in enumerate(case["images"]):
        placement = SimpleNamespace(canvas=tuple(image["canvas"]), scale=tuple(image["scale"]),
                                    shift=tuple(image["offset"]))
        yield detections(case["convention"], outputs, placement, 0.005, case["calls"], index)


def check(case):
    for (boxes, classes, scores), expected, kept in zip(predictions(case), case["expected"], case["kept"], strict=True):
        expected = [expected[at] for at in kept]
        assert [int(number) for number in classes] == [each["class_id"] for each in expected], classes
        for box, score, each in zip(boxes, scores, expected, strict=True):
            assert abs(float(score) - each["score"]) <= SCORE_TOLERANCE, (score, each)
            assert np.abs(box - each["box"]).max() <= EDGE_TOLERANCE, (box, each)


def check_refused(case):
    try:
        got = list(predictions(case))
    except RuntimeError as error:
        assert case["error"] in str(error), str(error)
        return
    raise AssertionError(f"was not refused: {got}")


def main():
    failed = 0
    paths = sorted(path for folder in sys.argv[2:] for path in Path(folder).glob("*.json"))
    for path in paths:
        case = json.loads(path.read_text())
        try:
            (check_refused if "error" in case else check)(case)
        except Exception as error:
            failed += 1
            print(f"{path.stem}: {type(error).__name__}: {error}")
    print(f"{len(paths) - failed} of {len(paths)} cases")
    sys.exit(failed > 0 or not paths)


main()
