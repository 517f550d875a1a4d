"""The model behind whatever serves it: `respond` for a server of one's own, `model_fn` and `transform_fn` for SageMaker's.

`application/x-image` and `image/*`: one encoded image. `application/x-tfexample`: a tf.Example, or a TFRecord file of them.
`application/jsonlines`: `{"b64": "…"}` a line. `application/json`: the same once, or `{"instances": [{"b64": "…"}, …]}`.
Records and lines are answered one a line, instances as `{"predictions": […]}`, in their order; one that cannot be read does not spoil
the others.
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
    """Status, body and content type of the answer to one request."""
    kind = (content_type or "").split(";")[0].strip().lower()
    body = body.encode() if isinstance(body, str) else bytes(body)
    try:
        if kind in IMAGES or kind.startswith("image/"):
            return 200, _json(model.answer(body)), JSON
        if kind in RECORDS:
            return 200, _lines(model, records(body), image_of_example), LINES[0]
        if kind in LINES:
            return 200, _lines(model, [line for line in body.splitlines() if line.strip()], image_of_json), LINES[0]
        if kind == JSON:
            return 200, _json(_answer_json(model, parsed_json(body))), JSON
    except Refused as error:
        return 400, _failed(error), JSON
    except Exception as error:
        # For the log of the container: the answer says only what, not where.
        traceback.print_exc()
        return 500, _failed(error), JSON
    known = ", ".join(["application/x-image", "image/*", RECORDS[0], LINES[0], JSON])
    return 415, _failed(f"the content type “{kind}” is not known here; known are {known}"), JSON


def _answer_json(model, request):
    if isinstance(request, dict) and isinstance(request.get("instances"), list):
        return {"predictions": [_answer_one(model, instance, image_of_base64) for instance in request["instances"]]}
    inputs = request.get("inputs", request) if isinstance(request, dict) else request
    return model.answer(image_of_base64(inputs))


def _lines(model, parts, image_of):
    return b"\n".join(_json(_answer_one(model, part, image_of)) for part in parts)


def _answer_one(model, part, image_of):
    """The answer about one of several images: one that cannot be read does not spoil the others."""
    try:
        return model.answer(image_of(part))
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
    """For `sagemaker-inference`, under the PyTorch image and Multi Model Server: its errors carry the status."""
    status, answer, kind = respond(model, body, content_type)
    if status == 200:
        return answer.decode(), kind
    from sagemaker_inference.errors import BaseInferenceToolkitError

    raise BaseInferenceToolkitError(status, answer.decode(), "the request could not be answered")


def model_folder():
    """The unpacked archive around this file."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
