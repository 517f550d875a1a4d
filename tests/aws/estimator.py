"""Writes estimator.json: what the SageMaker Python SDK's own estimator sends for a few training jobs.

    python3 -m venv sdk && sdk/bin/pip install sagemaker==2.257.7
    sdk/bin/python tests/aws/estimator.py tests/aws/estimator.json

No request leaves this computer: the clients of the session are mocks, and keep their arguments.
"""

import json
import logging
import os
import sys
import tempfile
from unittest.mock import Mock

from sagemaker.session import Session
from sagemaker.tensorflow import TensorFlow

logging.disable(logging.CRITICAL)
REGION = "eu-west-1"
IMAGE = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/tensorflow-training:2.19.0-gpu-py312"

CASES = [
    {
        "job_name": "plain",
        "output": "s3://bucket",
        "entry_point": "train.py",
        "hyperparameters": {},
        "mpi": None,
        "is_isolated": False,
    },
    {
        "job_name": "horovod",
        "output": "s3://bucket",
        "entry_point": "code/train.py",
        "hyperparameters": {
            "epochs": 3,
            "learning-rate": 0.001,
            "optimizer": "adam",
            "augment": True,
            "classes": ["cat", "고양이"],
            "note": 'it\'s a "test" \\ of 50 %',
            "nothing": None,
        },
        "mpi": {"processes": 8, "options": "-x NCCL_DEBUG=INFO --output-filename out"},
        "is_isolated": False,
    },
    {
        "job_name": "isolated",
        "output": "s3://bucket",
        "entry_point": "train.py",
        "hyperparameters": {"epochs": 1},
        "mpi": {"processes": 1, "options": ""},
        "is_isolated": True,
    },
    {
        "job_name": "everything",
        "output": "s3://bucket/models/",
        "entry_point": "train.py",
        "hyperparameters": {},
        "mpi": None,
        "is_isolated": False,
        "inputs": {"training": "s3://bucket/data/", "validation": "s3://bucket/validation/"},
        # Arguments of the estimator.
        "more": {
            "metric_definitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
            "environment": {"NOTE": "it's"},
            "subnets": ["subnet-0a1"],
            "security_group_ids": ["sg-0b2"],
            "use_spot_instances": True,
            "max_run": 600,
            "max_wait": 900,
            "checkpoint_s3_uri": "s3://bucket/checkpoints/",
            "volume_size": 50,
            "volume_kms_key": "alias/disk",
            "output_kms_key": "alias/out",
        },
    },
]


def request_of(case):
    client = Mock()
    session = Session(boto_session=Mock(region_name=REGION), sagemaker_client=client, default_bucket="bucket")
    session.sagemaker_config = {}
    distribution = None
    if case["mpi"]:
        mpi = {"enabled": True, "processes_per_host": case["mpi"]["processes"]}
        distribution = {"mpi": {**mpi, "custom_mpi_options": case["mpi"]["options"]}}
    with tempfile.TemporaryDirectory() as source:
        script = os.path.join(source, case["entry_point"])
        os.makedirs(os.path.dirname(script), exist_ok=True)
        open(script, "w").close()
        estimator = TensorFlow(
            image_uri=IMAGE,
            role="arn:aws:iam::123456789012:role/SageMaker",
            instance_count=2,
            instance_type="ml.p3.16xlarge",
            entry_point=case["entry_point"],
            source_dir=source,
            output_path=case["output"],
            # Otherwise, the SDK puts the source folder at the top of the bucket.
            code_location=case["output"],
            hyperparameters=dict(case["hyperparameters"]),
            distribution=distribution,
            enable_network_isolation=case["is_isolated"],
            model_dir=False,
            sagemaker_session=session,
            **case.get("more", {}),
        )
        estimator.fit(inputs=case.get("inputs"), job_name=case["job_name"], wait=False)
    return client.create_training_job.call_args.kwargs


for case in CASES:
    case["region"] = REGION
    case["request"] = request_of(case)
with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, indent=1, ensure_ascii=False)
    file.write("\n")
