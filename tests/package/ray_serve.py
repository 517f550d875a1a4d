"""Serves an unpacked archive with Ray Serve, on this computer only; prints `port N` when it is ready, and ends
when stdin closes.

usage: python ray_serve.py FOLDER
"""

import importlib
import os
import shutil
import socket
import sys
import tempfile

import ray
import yaml
from ray import serve


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


os.chdir(sys.argv[1])
sys.path.insert(0, os.getcwd())
with open("config.yaml", encoding="utf-8") as file:
    (application,) = yaml.safe_load(file)["applications"]
module, name = application["import_path"].split(":")

# Ray creates its sockets there, and their paths must be short.
session = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1", _temp_dir=session)
port = free_port()
serve.start(http_options={"host": "127.0.0.1", "port": port})
app = getattr(importlib.import_module(module), name)
serve.run(app, name=application["name"], route_prefix=application["route_prefix"])
print(f"port {port}", flush=True)
sys.stdin.read()
ray.shutdown()
shutil.rmtree(session, ignore_errors=True)
