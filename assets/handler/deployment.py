"""The model on Ray Serve, which `config.yaml` names."""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "code"))

from ray import serve
from starlette.responses import Response

import inference


@serve.deployment(max_ongoing_requests=max(16, 2 * (os.cpu_count() or 1)))
class Spotcheck:
    def __init__(self):
        self.model = inference.model_fn(inference.model_folder())

    async def __call__(self, request):
        if request.method == "GET":
            return Response(status_code=200)
        body = await request.body()
        content_type = request.headers.get("content-type")
        status, answer, kind = await asyncio.to_thread(inference.respond, self.model, body, content_type)
        return Response(answer, status_code=status, media_type=kind)


app = Spotcheck.bind()
