"""Writes endpoints.txt: botocore's endpoints of SageMaker and CloudWatch Logs in each partition, with and without FIPS
and dual stack.

PYTHONPATH=<packages of tests/setup/aws-models.txt> python3 endpoints.py > endpoints.txt
"""

import botocore.session
from botocore.endpoint_provider import EndpointProvider

REGIONS = """us-east-1 eu-west-1 ap-southeast-5 mx-central-1 cn-north-1 cn-northwest-1 us-gov-west-1 us-gov-east-1 eusc-de-east-1
us-iso-east-1 us-isob-east-1 eu-isoe-west-1 us-isof-south-1""".split()

loader = botocore.session.get_session().get_component("data_loader")
partitions = loader.load_data("partitions")
print("# Written by endpoints.py: service, region, FIPS, dual stack, address.")
for service in ("sagemaker", "logs"):
    provider = EndpointProvider(loader.load_service_model(service, "endpoint-rule-set-1"), partitions)
    for region in REGIONS:
        for fips in (False, True):
            for dual in (False, True):
                found = provider.resolve_endpoint(Region=region, UseFIPS=fips, UseDualStack=dual)
                print(service, region, str(fips).lower(), str(dual).lower(), found.url)
