"""A plain server with the routes of SageMaker's containers. Prints `port N` once the model is loaded and it listens.

python3 code/serve.py [--host ADDRESS] [--until-stdin-closes]      port: SAGEMAKER_BIND_TO_PORT (8080; 0 for a free one)
"""

import argparse
import http.server
import json
import os
import sys
import threading

MEBIBYTE = 1 << 20
# The largest body sent by Batch Transform.
MAX_BODY_BYTES = 100 * MEBIBYTE
# 16 of Batch Transform's default payloads of 6 MiB are below its limit of 100 MiB for all parallel requests.
MAX_CONCURRENT = min(os.cpu_count() or 1, 16)
# Seconds without a byte from a rejected client, after which its connection is closed.
REFUSED_TIMEOUT = 5


class TooLarge(ValueError):
    pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, respond):
        super().__init__(address, Handler)
        # (body, content type) -> (status, body, content type)
        self.respond = respond
        self.room = threading.Semaphore(MAX_CONCURRENT)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A client that stops in the middle of a request must not block its thread forever.
    timeout = 120

    def do_GET(self):
        if self.path == "/ping":
            return self.send(200, b"")
        if self.path == "/execution-parameters":
            parameters = {"MaxConcurrentTransforms": MAX_CONCURRENT, "BatchStrategy": "SINGLE_RECORD"}
            return self.send(200, json.dumps({**parameters, "MaxPayloadInMB": 6}).encode())
        self.send(404, b"")

    def do_POST(self):
        if self.path != "/invocations":
            return self.refuse(404, f"there is nothing at {self.path}")
        try:
            body = self.body()
        except ValueError as error:
            return self.refuse(413 if isinstance(error, TooLarge) else 400, str(error))
        with self.server.room:
            response = self.server.respond(body, self.headers.get("Content-Type"))
        self.send(*response)

    def refuse(self, status, reason):
        """Rejects a request and closes the connection: the rest of its body would be read as the next request."""
        self.close_connection = True
        self.send(status, json.dumps({"status": "failed", "error": reason}).encode())
        # Closing with unread bytes resets the connection, so a client that is still sending would never see the reason.
        self.connection.settimeout(REFUSED_TIMEOUT)
        left = MAX_BODY_BYTES
        try:
            while left > 0 and (piece := self.rfile.read1(MEBIBYTE)):
                left -= len(piece)
        except OSError:
            pass

    def body(self):
        """Raises `ValueError` if its length or a chunk's is not a number, `TooLarge` above the limit."""
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(self.checked(int(self.headers.get("Content-Length") or 0)))
        body = bytearray()
        while size := int(self.rfile.readline(100).split(b";")[0], 16):
            self.checked(len(body) + size)
            body += self.rfile.read(size)
            self.rfile.readline(100)
        while self.rfile.readline(1000).strip():
            pass
        return bytes(body)

    def checked(self, size):
        if not 0 <= size <= MAX_BODY_BYTES:
            raise TooLarge(f"the body has {size} bytes, more than the limit of {MAX_BODY_BYTES}")
        return size

    def send(self, status, body, content_type="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def serve(respond):
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--host", default="127.0.0.1", help="address to listen on, 0.0.0.0 in a container")
    arguments.add_argument("--until-stdin-closes", action="store_true", help="exit when standard input closes")
    arguments = arguments.parse_args()
    if arguments.until_stdin_closes:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    server = _listen(arguments.host, os.environ.get("SAGEMAKER_BIND_TO_PORT") or "8080", respond)
    print(f"port {server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


def _listen(host, port, respond):
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        hint = "set it to a number up to 65535, or to 0 for a free port"
        sys.exit(f"SAGEMAKER_BIND_TO_PORT is {port!r}, which is not a port; {hint}")
    try:
        return Server((host, int(port)), respond)
    except OSError as error:
        reason = error.strerror or error
        hint = "set SAGEMAKER_BIND_TO_PORT to another port, or to 0 for a free one"
        sys.exit(f"cannot listen on port {port} of {host} ({reason}); {hint}")


def _end_with_stdin():
    # Not sys.stdin, because its reader holds a lock that the interpreter needs to exit.
    while os.read(0, 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    import inference

    loaded = inference.model_fn(inference.model_folder())
    serve(lambda body, content_type: inference.respond(loaded, body, content_type))
