"""A training script for the tests, in the manner of SageMaker's script mode: it learns the mean size of the files of
each class (`cat-1.jpg`), and writes a model that `serve.py` serves.

With `--crash` it fails, with `--nothing` it writes no model, and with `--wait` it waits to be stopped.
"""

import argparse
import json
import os
import shutil
import sys
import time

from helpers.sizes import mean_sizes

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--note", default="")
parser.add_argument("--crash", default="")
parser.add_argument("--nothing", default="")
parser.add_argument("--wait", default="")
args = parser.parse_args()

hosts = json.loads(os.environ["SM_HOSTS"])
host = os.environ["SM_CURRENT_HOST"]
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", hosts.index(host)))
world = int(os.environ.get("OMPI_COMM_WORLD_SIZE", len(hosts)))
checkpoint = "/opt/ml/checkpoints/epoch".replace("/opt/ml", os.environ["SM_TEST_ROOT"])
begun = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
print(f"host {host}, process {rank} of {world}, from epoch {begun}, note {args.note}", flush=True)

if args.crash and rank == 0:
    print("loading the data", flush=True)
    raise ValueError(f"{args.crash}: the labels do not match")

sizes = mean_sizes(os.environ["SM_CHANNEL_TRAINING"])
for epoch in range(begun, args.epochs):
    print(f"epoch {epoch + 1}: loss={1 / (epoch + 1):.4f}; accuracy={1 - 0.5 / (epoch + 1):.4f};", flush=True)
    if rank == 0 and os.path.isdir(os.path.dirname(checkpoint)):
        # Complete or absent, whenever the instance is taken away.
        with open(f"{checkpoint}.new", "w") as file:
            file.write(str(epoch + 1))
        os.replace(f"{checkpoint}.new", checkpoint)
        print("saved a checkpoint", flush=True)
while args.wait:
    time.sleep(0.05)

if rank == 0 and not args.nothing:
    folder = os.environ["SM_MODEL_DIR"]
    with open(os.path.join(folder, "model.json"), "w") as file:
        json.dump({"sizes": sizes, "world": world, "hyperparameters": json.loads(os.environ["SM_HPS"])}, file)
    os.makedirs(os.path.join(folder, "code"))
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "serve.py"), os.path.join(folder, "code"))
sys.exit(0)
