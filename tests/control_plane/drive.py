"""Drives the tests' control plane with AWS's own client for Python: if boto3 accepts it, it implements AWS's protocol,
independent of our client. The environment contains the credentials and the address.

    drive.py BUCKET ROLE IMAGE

The bucket has `model.tar.gz`, an echoing handler, and `in/`: `a.txt`, `b.txt`, `bad.txt` that the handler rejects; and
`endless/`, which has an object without a response.
"""

import json
import sys
import time

import boto3
from botocore.exceptions import ClientError, ParamValidationError

BUCKET, ROLE, IMAGE = sys.argv[1:]
sagemaker = boto3.client("sagemaker")
runtime = boto3.client("sagemaker-runtime")
logs = boto3.client("logs")
GROUP = "/aws/sagemaker/TransformJobs"


def main():
    models()
    jobs()
    stopping()
    listing()
    reading_logs()
    endpoint()
    errors()


def models():
    arn = sagemaker.create_model(
        ModelName="echo",
        PrimaryContainer={
            "Image": IMAGE,
            "ModelDataUrl": f"s3://{BUCKET}/model.tar.gz",
            "Environment": {"GREETING": "hello"},
        },
        ExecutionRoleArn=ROLE,
        Tags=[{"Key": "team", "Value": "vision"}],
    )["ModelArn"]
    described = sagemaker.describe_model(ModelName="echo")
    assert described["ModelArn"] == arn, described
    assert described["PrimaryContainer"]["Environment"] == {"GREETING": "hello"}, described
    assert described["CreationTime"].timestamp() > time.time() - 60
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "stage", "Value": "test"}])
    tags = {tag["Key"]: tag["Value"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]}
    assert tags == {"team": "vision", "stage": "test"}, tags
    for number in range(3):
        sagemaker.create_model(
            ModelName=f"other-{number}",
            PrimaryContainer={"Image": IMAGE, "ModelDataUrl": f"s3://{BUCKET}/model.tar.gz"},
            ExecutionRoleArn=ROLE,
        )
    pages = sagemaker.get_paginator("list_models").paginate(NameContains="other", PaginationConfig={"PageSize": 2})
    pages = [[model["ModelName"] for model in page["Models"]] for page in pages]
    assert pages == [["other-2", "other-1"], ["other-0"]], pages
    sagemaker.delete_model(ModelName="other-1")
    refused("ValidationException", "Could not find model", sagemaker.describe_model, ModelName="other-1")


def start(name, **more):
    given = {
        "TransformJobName": name,
        "ModelName": "echo",
        "BatchStrategy": "SingleRecord",
        "MaxPayloadInMB": 6,
        "MaxConcurrentTransforms": 2,
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/in/"}},
            "ContentType": "text/plain",
        },
        "TransformOutput": {"S3OutputPath": f"s3://{BUCKET}/out/{name}/", "Accept": "application/json"},
        "TransformResources": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
    }
    given.update(more)
    return sagemaker.create_transform_job(**given)["TransformJobArn"]


def until_over(name):
    while (job := sagemaker.describe_transform_job(TransformJobName=name))["TransformJobStatus"] in (
        "InProgress",
        "Stopping",
    ):
        time.sleep(0.05)
    return job


def jobs():
    arn = start("first", Environment={"STAGE": "test"}, Tags=[{"Key": "team", "Value": "vision"}])
    job = until_over("first")
    assert job["TransformJobStatus"] == "Failed", job
    assert job["FailureReason"] == "ClientError: See job logs for more information", job
    assert job["TransformJobArn"] == arn and job["Environment"] == {"STAGE": "test"}, job
    assert job["CreationTime"] <= job["TransformStartTime"] <= job["TransformEndTime"], job
    assert job["DataProcessing"] == {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "None"}, job
    start(
        "second",
        TransformInput={
            "DataSource": {"S3DataSource": {"S3DataType": "ManifestFile", "S3Uri": f"s3://{BUCKET}/good.manifest"}},
            "ContentType": "text/plain",
        },
    )
    waiter = sagemaker.get_waiter("transform_job_completed_or_stopped")
    waiter.wait(TransformJobName="second", WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def stopping():
    # Its handler never responds.
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/endless/"}}
    start("third", TransformInput={"DataSource": source, "ContentType": "text/plain"})
    while "TransformStartTime" not in sagemaker.describe_transform_job(TransformJobName="third"):
        time.sleep(0.05)
    sagemaker.stop_transform_job(TransformJobName="third")
    assert until_over("third")["TransformJobStatus"] == "Stopped"
    refused("ValidationException", "in status Stopped", sagemaker.stop_transform_job, TransformJobName="third")


def listing():
    def names(**given):
        pages = sagemaker.get_paginator("list_transform_jobs").paginate(PaginationConfig={"PageSize": 1}, **given)
        return [job["TransformJobName"] for page in pages for job in page["TransformJobSummaries"]]

    assert names() == ["third", "second", "first"]
    assert names(SortBy="Name", SortOrder="Ascending") == ["first", "second", "third"]
    assert names(StatusEquals="Failed") == ["first"]
    assert names(NameContains="ir") == ["third", "first"]
    assert names(CreationTimeAfter=time.time() + 60) == []


def reading_logs():
    streams = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="first/")["logStreams"]
    container, data = sorted(stream["logStreamName"] for stream in streams)
    assert data == container + "/data-log", streams
    events = whole_stream(data)
    assert "MaxConcurrentTransforms=2, MaxPayloadInMB=6, BatchStrategy=SINGLE_RECORD" in events[0], events
    assert any(event.endswith(f":[sagemaker logs]: {BUCKET}/in/bad.txt: ClientError: 400") for event in events), events
    # Page by page, forward and backward, the same events.
    token, forward = None, []
    while True:
        more = {"nextToken": token} if token else {"startFromHead": True}
        page = logs.get_log_events(logGroupName=GROUP, logStreamName=data, limit=1, **more)
        forward += [event["message"] for event in page["events"]]
        if page["nextForwardToken"] == token:
            break
        token = page["nextForwardToken"]
    assert forward == events, forward
    page = logs.get_log_events(logGroupName=GROUP, logStreamName=data, limit=1)
    assert page["events"][0]["message"] == events[-1]
    page = logs.get_log_events(logGroupName=GROUP, logStreamName=data, limit=1, nextToken=page["nextBackwardToken"])
    assert page["events"][0]["message"] == events[-2]
    assert any('"POST /invocations' in event for event in whole_stream(container))
    found = logs.filter_log_events(logGroupName=GROUP, logStreamNamePrefix="first/", filterPattern="ClientError")[
        "events"
    ]
    assert [event["logStreamName"] for event in found] == [data], found
    refused(
        "ResourceNotFoundException", "does not exist", logs.get_log_events, logGroupName="/none", logStreamName="none"
    )


def whole_stream(name):
    page = logs.get_log_events(logGroupName=GROUP, logStreamName=name, startFromHead=True)
    return [event["message"] for event in page["events"]]


def endpoint():
    sagemaker.create_endpoint_config(
        EndpointConfigName="config",
        ProductionVariants=[
            {
                "VariantName": "AllTraffic",
                "ModelName": "echo",
                "InstanceType": "ml.m5.xlarge",
                "InitialInstanceCount": 1,
            }
        ],
    )
    described = sagemaker.describe_endpoint_config(EndpointConfigName="config")
    assert described["ProductionVariants"][0]["InitialVariantWeight"] == 1, described
    sagemaker.create_endpoint(EndpointName="live", EndpointConfigName="config")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="live", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    assert [one["EndpointName"] for one in sagemaker.list_endpoints(StatusEquals="InService")["Endpoints"]] == ["live"]
    response = runtime.invoke_endpoint(
        EndpointName="live", ContentType="text/plain", Accept="application/json", Body=b"hello"
    )
    said = json.loads(response["Body"].read())
    assert response["InvokedProductionVariant"] == "AllTraffic", response
    assert response["ContentType"] == "application/json", response
    assert (said["text"], said["content_type"], said["accept"]) == ("hello", "text/plain", "application/json"), said
    error = refused("ModelError", "client error (400)", runtime.invoke_endpoint, EndpointName="live", Body=b"fail 400")
    assert error["OriginalStatusCode"] == 400 and "as the body says" in error["OriginalMessage"], error
    refused("ValidationError", "not found", runtime.invoke_endpoint, EndpointName="none", Body=b"")
    refused("413", "6291456", runtime.invoke_endpoint, EndpointName="live", Body=b"x" * 6_291_457)
    sagemaker.delete_endpoint(EndpointName="live")
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName="live", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    sagemaker.delete_endpoint_config(EndpointConfigName="config")
    sagemaker.delete_model(ModelName="echo")


def errors():
    refused("ValidationException", "Could not find model", start, "fourth")
    refused("ValidationException", "satisfy regular expression", start, "not_a_name")
    refused("ResourceNotFound", "fourth", sagemaker.describe_transform_job, TransformJobName="fourth")
    try:
        sagemaker.describe_transform_job(TransformJobName=1)
        raise AssertionError("boto3 checks types before it sends anything")
    except ParamValidationError:
        pass


def refused(code, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        assert words in error.response["Error"]["Message"], error.response
        return error.response
    raise AssertionError(f"{call} went through; {code} was to be expected")


main()
