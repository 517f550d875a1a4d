"""Runs a training job in folders like those of SageMaker's containers, one per host.

    train.py FOLDER < request of CreateTrainingJob

FOLDER has `channels/<name>/…` and `checkpoints/…`, which the control plane has downloaded. Each host gets the contract
of `sagemaker-training` 5.1.4: `input/config/{hyperparameters,resourceconfig,inputdataconfig}.json`, the data of its
channels, the unpacked source, `SM_…` variables, and hyperparameters as arguments. With MPI, processes get the variables
of Open MPI. The lines of a host have its name in front: `algo-1 …`. At the end `result.json` has the exit code, the last
lines on stderr, and the metrics, and `model.tar.gz` what was written to the model folders, if anything.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading

folder = os.path.abspath(sys.argv[1])
request = json.load(sys.stdin)
resources = request["ResourceConfig"]
hosts = [f"algo-{number + 1}" for number in range(resources["InstanceCount"])]
encoded = request.get("HyperParameters", {})
lines = []
errors = []
lock = threading.Lock()


def decoded(value):
    try:
        return json.loads(value)
    except ValueError:
        return value


parameters = {name: decoded(value) for name, value in encoded.items()}
own = {name: value for name, value in parameters.items() if not name.startswith("sagemaker_")}


def prepare(host):
    root = os.path.join(folder, host)
    config = os.path.join(root, "input", "config")
    for path in [config, os.path.join(root, "model"), os.path.join(root, "output", "data")]:
        os.makedirs(path)
    channels = {}
    for number, channel in enumerate(request.get("InputDataConfig", [])):
        name = channel["ChannelName"]
        source = channel["DataSource"]["S3DataSource"]
        channels[name] = {"TrainingInputMode": request["AlgorithmSpecification"]["TrainingInputMode"]}
        data = os.path.join(root, "input", "data", name)
        shutil.copytree(os.path.join(folder, "channels", name), data)
        if source.get("S3DataDistributionType") == "ShardedByS3Key":
            files = sorted(os.path.join(at, name) for at, _, names in os.walk(data) for name in names)
            for index, path in enumerate(files):
                if index % len(hosts) != hosts.index(host):
                    os.remove(path)
    contents = {
        # As AWS passes them: all values are text.
        "hyperparameters": encoded,
        "resourceconfig": {
            "current_host": host,
            "current_instance_type": resources["InstanceType"],
            "hosts": hosts,
            "network_interface_name": "eth0",
        },
        "inputdataconfig": channels,
    }
    for name, content in contents.items():
        with open(os.path.join(config, f"{name}.json"), "w") as file:
            json.dump(content, file)
    code = os.path.join(root, "code")
    directory = parameters["sagemaker_submit_directory"]
    archive = os.path.join(folder, "sourcedir.tar.gz")
    if directory.startswith("/opt/ml/"):
        archive = os.path.join(root, directory[len("/opt/ml/"):])
    with tarfile.open(archive) as tar:
        tar.extractall(code)
    if "CheckpointConfig" in request:
        os.symlink(os.path.join(folder, "checkpoints"), os.path.join(root, "checkpoints"))
    variables = {
        **request.get("Environment", {}),
        "PATH": os.environ["PATH"],
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRAINING_JOB_NAME": request["TrainingJobName"],
        "SAGEMAKER_REGION": parameters["sagemaker_region"],
        "SM_TEST_ROOT": root,
        "SM_MODEL_DIR": os.path.join(root, "model"),
        "SM_OUTPUT_DATA_DIR": os.path.join(root, "output", "data"),
        "SM_HOSTS": json.dumps(hosts),
        "SM_CURRENT_HOST": host,
        "SM_HPS": json.dumps(own),
        "SM_CHANNELS": json.dumps(sorted(channels)),
    }
    for name, value in own.items():
        variables[f"SM_HP_{name.upper()}"] = value if isinstance(value, str) else json.dumps(value)
    for name in channels:
        variables[f"SM_CHANNEL_{name.upper()}"] = os.path.join(root, "input", "data", name)
    return code, variables


def run(host, code, variables):
    arguments = []
    for name, value in own.items():
        arguments += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    command = [sys.executable, parameters["sagemaker_program"], *arguments]
    process = subprocess.Popen(
        command, cwd=code, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def read(stream, kept):
        for line in stream:
            with lock:
                kept.append(line.rstrip())
                print(host, line.rstrip(), flush=True)

    readers = [
        threading.Thread(target=read, args=(process.stdout, lines)),
        threading.Thread(target=read, args=(process.stderr, errors)),
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    codes.append(process.wait())


codes = []
prepared = [(host, *prepare(host)) for host in hosts]
processes = []
if parameters.get("sagemaker_mpi_enabled"):
    per_host = parameters["sagemaker_mpi_num_of_processes_per_host"]
    print(hosts[0], "mpirun", parameters["sagemaker_mpi_custom_mpi_options"], flush=True)
    for number, (host, code, variables) in enumerate(prepared):
        for local in range(per_host):
            ranks = {
                "OMPI_COMM_WORLD_RANK": str(number * per_host + local),
                "OMPI_COMM_WORLD_LOCAL_RANK": str(local),
                "OMPI_COMM_WORLD_SIZE": str(per_host * len(hosts)),
            }
            processes.append((host, code, {**variables, **ranks}))
else:
    processes = prepared
threads = [threading.Thread(target=run, args=process) for process in processes]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

metrics = {}
for definition in request["AlgorithmSpecification"].get("MetricDefinitions", []):
    for line in lines:
        found = re.search(definition["Regex"], line)
        if found:
            metrics[definition["Name"]] = float(found.group(1))
written = [(os.path.join(folder, host, "model"), host) for host in hosts]
if any(os.listdir(path) for path, _ in written):
    with tarfile.open(os.path.join(folder, "model.tar.gz"), "w:gz") as tar:
        for path, _ in written:
            for name in sorted(os.listdir(path)):
                tar.add(os.path.join(path, name), arcname=name)
with open(os.path.join(folder, "result.json"), "w") as file:
    json.dump({"code": max(codes, key=abs), "errors": errors[-3:], "metrics": metrics}, file)
