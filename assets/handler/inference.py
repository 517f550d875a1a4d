"""Predicts the images of one request: `respond` for a plain server, `model_fn` and `transform_fn` for SageMaker's.

`application/x-image` and `image/*`: one encoded image
`application/x-tfexample`: a tf.Example, or a TFRecord file of them
`application/jsonlines`: `{"b64": "…"}` on each line
`application/json`: `{"b64": "…"}`, or `{"instances": [{"b64": "…"}, …]}`

Records and lines get one prediction per line, instances get `{"predictions": […]}`, in the order of the images. An
image that cannot be read gets an error in its place.
"""

import json
import os
import traceback

from spotcheck_model import Model
from spotcheck_records import Refused, image_of_base64, image_of_example, image_of_json, parsed_json, records

IMAGES = ("", "application/x-image", "application/octet-stream")
RECORDS = ("application/x-tfexample", "application/x-tfrecord")
LINES = ("application/jsonlines", "application/x-jsonlines", "application/x-ndjson")
JSON = "application/json"


def respond(model, body, content_type):
    """The status, body and content type of the response to one request."""
    kind = (content_type or "").split(";")[0].strip().lower()
    body = body.encode() if isinstance(body, str) else bytes(body)
    try:
        if kind in IMAGES or kind.startswith("image/"):
            return 200, _json(model.predict(body)), JSON
        if kind in RECORDS:
            return 200, _lines(model, records(body), image_of_example), LINES[0]
        if kind in LINES:
            return 200, _lines(model, [line for line in body.splitlines() if line.strip()], image_of_json), LINES[0]
        if kind == JSON:
            return 200, _json(_predict_json(model, parsed_json(body))), JSON
    except Refused as error:
        return 400, _failed(error), JSON
    except Exception as error:
        # For the container's log: the response has the message without the location in the code.
        traceback.print_exc()
        return 500, _failed(error), JSON
    known = ", ".join(["application/x-image", "image/*", RECORDS[0], LINES[0], JSON])
    return 415, _failed(f"the content type “{kind}” is unknown; known types: {known}"), JSON


def _predict_json(model, request):
    if isinstance(request, dict) and isinstance(request.get("instances"), list):
        return {"predictions": [_predict_one(model, instance, image_of_base64) for instance in request["instances"]]}
    inputs = request.get("inputs", request) if isinstance(request, dict) else request
    return model.predict(image_of_base64(inputs))


def _lines(model, parts, image_of):
    return b"\n".join(_json(_predict_one(model, part, image_of)) for part in parts)


def _predict_one(model, part, image_of):
    """The prediction for one of several images, or the error for this image."""
    try:
        return model.predict(image_of(part))
    except (Refused, RuntimeError) as error:
        return _failure(error)


def _failed(error):
    return _json(_failure(error))


def _failure(error):
    return {"status": "failed", "error": str(error)}


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def model_fn(model_dir):
    return Model(model_dir)


def transform_fn(model, body, content_type, accept):
    """For `sagemaker-inference`, in the PyTorch image and Multi Model Server: errors are exceptions."""
    status, content, kind = respond(model, body, content_type)
    if status == 200:
        return content.decode(), kind
    from sagemaker_inference.errors import BaseInferenceToolkitError

    raise BaseInferenceToolkitError(status, content.decode(), "the request failed")


def model_folder():
    """The unpacked archive that contains this file."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
