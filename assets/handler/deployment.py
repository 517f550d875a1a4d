"""The model on Ray Serve, referenced by `config.yaml`."""

import asyncio
import os
import sys

from ray import serve
from starlette.responses import Response

FOLDER = os.path.dirname(os.path.abspath(__file__))


@serve.deployment(max_ongoing_requests=max(16, 2 * (os.cpu_count() or 1)))
class Spotcheck:
    def __init__(self):
        # Not at the top: the class reaches its replicas without the surrounding module.
        sys.path.insert(0, os.path.join(FOLDER, "code"))
        import inference

        self.respond = inference.respond
        self.model = inference.model_fn(FOLDER)

    async def __call__(self, request):
        if request.method == "GET":
            return Response(status_code=200)
        body = await request.body()
        content_type = request.headers.get("content-type")
        status, content, kind = await asyncio.to_thread(self.respond, self.model, body, content_type)
        return Response(content, status_code=status, media_type=kind)


app = Spotcheck.bind()
