"""A container that immediately echoes its input, for tests of everything but the predictions. It follows SageMaker's
contract: GET /ping, GET /execution-parameters, POST /invocations, the port from SAGEMAKER_BIND_TO_PORT.

A body that begins with "fail NNN" gets that status; one that begins with "fail once NNN", only the first time. "exit"
ends the process, "wait" gets no response, "environment" returns the environment.
"""

import argparse
import hashlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = set()
now = 0
most = 0
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/ping":
            self.respond(200, {})
        elif self.path == "/execution-parameters" and "ECHO_PARAMETERS" in os.environ:
            self.respond(200, json.loads(os.environ["ECHO_PARAMETERS"]))
        else:
            self.respond(404, {})

    def do_POST(self):
        global now, most
        body, chunked = self.body()
        with lock:
            now += 1
            most = max(most, now)
        try:
            self.echo(body, chunked)
        finally:
            with lock:
                now -= 1

    def echo(self, body, chunked):
        words = body.split()
        if words[:1] == [b"exit"]:
            os._exit(3)
        if words[:1] == [b"wait"]:
            threading.Event().wait()
        if words[:2] == [b"fail", b"once"]:
            with lock:
                again = body in seen
                seen.add(body)
            if not again:
                return self.respond(int(words[2]), {"error": "only once"})
        elif words[:1] == [b"fail"]:
            return self.respond(int(words[1]), {"error": "as the body says"})
        said = {
            "text": body.decode("utf-8", "replace") if len(body) < 1000 else None,
            "len": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "content_type": self.headers["Content-Type"],
            "accept": self.headers["Accept"],
            "chunked": chunked,
        }
        if words[:1] == [b"environment"]:
            said["environment"] = {name: value for name, value in os.environ.items() if name.isupper()}
        self.respond(200, said)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"])), False
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body, True

    def respond(self, status, said):
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


parser = argparse.ArgumentParser()
parser.add_argument("--host", default="0.0.0.0")
arguments = parser.parse_args()
server = ThreadingHTTPServer((arguments.host, int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080"))), Handler)
print(f"port {server.server_port}", flush=True)
print("ready", file=sys.stderr, flush=True)
server.serve_forever()
