"""Replaces SageMaker's TensorFlow container: the handlers of an archive, and a TensorFlow Serving of the user.

SPOTCHECK_ARCHIVE: the unpacked archive. SPOTCHECK_TENSORFLOW_SERVING: http://host:8501/v1/models/NAME:predict
"""

import collections
import io
import json
import os
import sys
import urllib.error
import urllib.request

from serve import serve

sys.path.insert(0, os.path.join(os.environ["SPOTCHECK_ARCHIVE"], "code"))
import inference

ADDRESS = os.environ["SPOTCHECK_TENSORFLOW_SERVING"]
TIMEOUT_S = 600

# The fields of the context in SageMaker's container.
Context = collections.namedtuple(
    "Context",
    "model_name model_version method rest_uri grpc_port channel custom_attributes request_content_type accept_header"
    " content_length",
)


class Response:
    """The part of a response of the package `requests` that handlers use."""

    def __init__(self, status_code, content):
        self.status_code = status_code
        self.content = content
        self.text = content.decode("utf-8", "replace")
        self.headers = {"Content-Type": "application/json"}

    def json(self):
        return json.loads(self.content)


def respond(body, content_type):
    accept = "application/json"
    context = Context(None, None, "predict", ADDRESS, None, None, None, content_type, accept, len(body))
    try:
        if hasattr(inference, "handler"):
            response = inference.handler(io.BytesIO(body), context)
        else:
            request = inference.input_handler(io.BytesIO(body), context)
            response = inference.output_handler(post(request), context)
        content, kind = response if isinstance(response, tuple) else (response, accept)
        return 200, content if isinstance(content, bytes) else str(content).encode(), kind
    except Exception as error:
        text = json.dumps({"status": "failed", "error": f"{error or type(error).__name__}"}, ensure_ascii=False)
        return 500, text.encode(), accept


def post(body):
    body = body.encode() if isinstance(body, str) else bytes(body)
    request = urllib.request.Request(ADDRESS, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return Response(response.status, response.read())
    except urllib.error.HTTPError as error:
        return Response(error.code, error.read())
    except urllib.error.URLError as error:
        raise ConnectionError(f"TensorFlow Serving cannot be reached at {ADDRESS}: {error.reason}") from None


if __name__ == "__main__":
    serve(respond)
