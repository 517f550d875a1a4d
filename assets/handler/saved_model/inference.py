"""Turns images into TensorFlow Serving requests: `input_handler` and `output_handler` for SageMaker's TensorFlow image.

`application/x-image` and `image/*`: one encoded image
`application/x-tfexample`: a tf.Example, or a TFRecord file of them
`application/jsonlines`: `{"b64": "…"}` on each line
`application/json`: passed on unchanged

`spotcheck-serving.json` in this folder names the signature and the input, if the model has several.
"""

import base64
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from spotcheck_records import image_of_example, image_of_json, records

with open(os.path.join(HERE, "spotcheck-serving.json"), encoding="utf-8") as file:
    SERVING = json.load(file)


def input_handler(data, context):
    """The body for TensorFlow Serving's REST API."""
    body = data.read()
    kind = (context.request_content_type or "").split(";")[0].strip().lower()
    if kind == "application/json":
        return body
    if kind in ("", "application/x-image", "application/octet-stream") or kind.startswith("image/"):
        images = [body]
    elif kind in ("application/x-tfexample", "application/x-tfrecord"):
        images = [image_of_example(record) for record in records(body)]
    elif kind in ("application/jsonlines", "application/x-jsonlines", "application/x-ndjson"):
        images = [image_of_json(line) for line in body.splitlines() if line.strip()]
    else:
        known = "application/x-image, application/x-tfexample, application/jsonlines and application/json"
        raise ValueError(f"the content type “{kind}” is unknown; known types: {known}")
    if not all(images):
        raise ValueError("is empty: it has no bytes")
    return json.dumps(request(images))


def request(images):
    """Source: tensorflow.org/tfx/serving/api_rest, binary values."""
    values = [{"b64": base64.b64encode(image).decode()} for image in images]
    name = SERVING.get("input")
    instances = [{name: value} for value in values] if name else values
    signature = SERVING.get("signature")
    return {"signature_name": signature, "instances": instances} if signature else {"instances": instances}


def output_handler(response, context):
    """TensorFlow Serving's response on one line, or its error."""
    if response.status_code != 200:
        raise ValueError(response.content.decode("utf-8", "replace"))
    return json.dumps(json.loads(response.content), separators=(",", ":")), "application/json"
