"""The handler's model inputs for a model card: prints a JSON line per case.

usage: python check_inputs.py CODE_FOLDER CASES
CASES has a JSON line for each case: `input` of a card, and `width`, `height` and `pixels` (a file of RGB bytes).
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, sys.argv[1])
import spotcheck_inputs


def summary(tensor):
    return {"shape": list(tensor.shape), "sha256": hashlib.sha256(np.ascontiguousarray(tensor).tobytes()).hexdigest()}


for line in Path(sys.argv[2]).read_text().splitlines():
    case = json.loads(line)
    card, size = case["input"], (case["width"], case["height"])
    image = Image.frombytes("RGB", size, Path(case["pixels"]).read_bytes())
    placement = spotcheck_inputs.place(card, size)
    result = {
        "tensor": summary(spotcheck_inputs.to_tensor(card, placement, image)),
        "auxiliary": [
            summary(spotcheck_inputs.auxiliary_input(auxiliary, placement, size).astype(np.float32))
            for auxiliary in card.get("auxiliary", ())
        ],
        # In hexadecimal for every bit; 0.0 is added for a zero without a sign.
        "scale_and_offset": (np.array([*placement.scale, *placement.shift]) + 0.0).tobytes().hex(),
    }
    print(json.dumps(result))
