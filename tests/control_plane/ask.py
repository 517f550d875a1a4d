"""Makes one call with boto3, once, and prints "well" or the error.

ask.py SERVICE 'list_models()'
"""

import sys

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

service, call = sys.argv[1:]
client = boto3.client(service, config=Config(retries={"total_max_attempts": 1}))
try:
    eval(call, {}, {name: getattr(client, name) for name in dir(client) if not name.startswith("_")})
    print("well")
except ClientError as error:
    print(f"{error.response['Error']['Code']}: {error.response['Error']['Message']}")
except BotoCoreError as error:
    print(f"{type(error).__name__}: {error}")
