"""The instance types of Batch Transform as botocore describes them, as JSON on standard output. The type
ml.FAMILY.SIZE."""

import json

import botocore.loaders

model = botocore.loaders.Loader().load_service_model("sagemaker", "service-2")
print(json.dumps({"instance_types": model["shapes"]["TransformInstanceType"]["enum"]}))
