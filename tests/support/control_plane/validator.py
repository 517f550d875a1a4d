"""Checks requests and responses against AWS's own service models (botocore).

Each line of standard input is a JSON object, and gets a line on standard output: a JSON list of complaints, empty
if there are none.

    {"service": "sagemaker" | "logs", "operation": NAME, "request": BODY}
    {"service": …, "operation": NAME, "response": BODY}               of a successful call
    {"service": …, "operation": NAME, "error": CODE, "status": HTTP STATUS, "body": BODY}
    {"service": "sagemaker-runtime", "operation": NAME,
     "request" | "response": {"path": …, "headers": {…}, "body_len": N}}

A complaint is {"kind": "shape" | "value", "message": …}. "shape" is an unknown or missing member or a wrong type;
"value" is a value out of range, in the wording of AWS's ValidationException.
"""

import base64
import json
import re
import sys

import botocore.session

# The errors of any call, in addition to those of the operation's model ("Common Errors" of the API references).
COMMON_ERRORS = {
    "AccessDeniedException": 400,
    "ExpiredTokenException": 400,
    "IncompleteSignatureException": 403,
    "InternalFailure": 500,
    "InvalidSignatureException": 400,
    "MissingAuthenticationTokenException": 403,
    "ServiceUnavailable": 503,
    "ThrottlingException": 400,
    "UnknownOperationException": 400,
    "UnrecognizedClientException": 400,
    "ValidationException": 400,
}

session = botocore.session.get_session()
services = {}
complaints = []


def main():
    for line in sys.stdin:
        complaints.clear()
        check(json.loads(line))
        print(json.dumps(complaints), flush=True)


def check(question):
    service = model(question["service"])
    name = question["operation"]
    if name not in service.operation_names:
        return shape(f"{service.service_name} knows no operation {name}")
    operation = service.operation_model(name)
    if "error" in question:
        check_error(service, operation, question)
    elif service.metadata["protocol"] == "rest-json":
        side, given = ("request", operation.input_shape), question.get("request")
        if given is None:
            side, given = ("response", operation.output_shape), question["response"]
        check_rest(operation, *side, given)
    elif "request" in question:
        check_value(question["request"], operation.input_shape, "")
    elif operation.output_shape is not None:
        check_value(question["response"], operation.output_shape, "")
    elif question["response"] not in (None, {}):
        shape(f"{name} has an empty response, but here {question['response']}")


def model(service):
    if service not in services:
        services[service] = session.get_service_model(service)
    return services[service]


def check_error(service, operation, question):
    code, status = question["error"], question["status"]
    for known in operation.error_shapes:
        if known.metadata.get("error", {}).get("code", known.name) == code or known.name == code:
            expected = known.metadata.get("error", {}).get("httpStatusCode", 400)
            if status != expected:
                shape(f"{code} comes with {expected}, but here with {status}")
            body = {key: value for key, value in question["body"].items() if key not in ("__type", "ErrorCode")}
            # The protocols use either spelling, and send it even if the model does not have it.
            message = body.pop("message", None)
            if message is not None and "Message" in known.members:
                body["Message"] = message
            return check_value(body, known, code)
    if COMMON_ERRORS.get(code) != status:
        shape(f"{operation.name} does not end with {code} and {status}")


def check_rest(operation, side, expected, given):
    headers = {name.lower(): value for name, value in given["headers"].items()}
    params = {}
    if side == "request":
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(operation.http["requestUri"]))
        match = re.fullmatch(pattern, given["path"])
        if match is None:
            return shape(f"{given['path']} is not {operation.http['requestUri']}")
        params.update(match.groupdict())
    known = set()
    for name, member in expected.members.items():
        if member.serialization.get("location") == "header":
            header = member.serialization["name"].lower()
            known.add(header)
            if header in headers:
                params[name] = headers[header]
    for header in headers:
        if header.startswith("x-amzn-sagemaker-") and header not in known:
            shape(f"{operation.name} knows no header {header}")
    largest = expected.members["Body"].metadata["max"]
    if given["body_len"] > largest:
        value(f"a body of {given['body_len']} bytes, {largest} at most")
    for name, text in params.items():
        check_value(text, expected.members[name], name)
    for name in expected.required_members:
        if name != "Body" and name not in params:
            shape(f"{name} is missing")


def check_value(given, expected, path):
    checker = CHECKERS[expected.type_name]
    checker(given, expected, path)


def check_structure(given, expected, path):
    if not isinstance(given, dict):
        return wrong_type(given, expected, path)
    for name in expected.required_members:
        if given.get(name) is None:
            shape(f"{path or expected.name}: {name} is missing")
    for name, member in given.items():
        names = {shape.serialization.get("name", key): shape for key, shape in expected.members.items()}
        if name not in names:
            shape(f"{path or expected.name}: knows no member {name}")
        elif member is None:
            shape(f"{below(path, name)}: null")
        else:
            check_value(member, names[name], below(path, name))


def check_list(given, expected, path):
    if not isinstance(given, list):
        return wrong_type(given, expected, path)
    check_length(len(given), given, expected, path)
    for number, member in enumerate(given, 1):
        check_value(member, expected.member, f"{path}.{number}.member")


def check_map(given, expected, path):
    if not isinstance(given, dict):
        return wrong_type(given, expected, path)
    check_length(len(given), given, expected, path)
    for key, member in given.items():
        check_value(key, expected.key, f"{path}.key")
        check_value(member, expected.value, f"{path}.{key}")


def check_string(given, expected, path):
    if not isinstance(given, str):
        return wrong_type(given, expected, path)
    check_length(len(given), given, expected, path)
    pattern = expected.metadata.get("pattern")
    if pattern and re.fullmatch(of_java(pattern), given, re.DOTALL) is None:
        unsatisfied(given, path, f"Member must satisfy regular expression pattern: {pattern}")
    if expected.enum and given not in expected.enum:
        unsatisfied(given, path, f"Member must satisfy enum value set: [{', '.join(expected.enum)}]")


def check_integer(given, expected, path):
    if isinstance(given, bool) or not isinstance(given, int):
        return wrong_type(given, expected, path)
    check_range(given, expected, path)


def check_float(given, expected, path):
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return wrong_type(given, expected, path)
    check_range(given, expected, path)


def check_boolean(given, expected, path):
    if not isinstance(given, bool):
        wrong_type(given, expected, path)


def check_timestamp(given, expected, path):
    # Both protocols write seconds since 1970.
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 1e11:
        wrong_type(given, expected, path)


def check_blob(given, expected, path):
    try:
        base64.b64decode(given, validate=True)
    except (TypeError, ValueError):
        wrong_type(given, expected, path)


CHECKERS = {
    "structure": check_structure,
    "list": check_list,
    "map": check_map,
    "string": check_string,
    "character": check_string,
    "integer": check_integer,
    "long": check_integer,
    "float": check_float,
    "double": check_float,
    "boolean": check_boolean,
    "timestamp": check_timestamp,
    "blob": check_blob,
}


def check_length(length, given, expected, path):
    if length < expected.metadata.get("min", 0):
        unsatisfied(given, path, f"Member must have length greater than or equal to {expected.metadata['min']}")
    if length > expected.metadata.get("max", length):
        unsatisfied(given, path, f"Member must have length less than or equal to {expected.metadata['max']}")


def check_range(given, expected, path):
    if given < expected.metadata.get("min", given):
        unsatisfied(given, path, f"Member must have value greater than or equal to {expected.metadata['min']}")
    if given > expected.metadata.get("max", given):
        unsatisfied(given, path, f"Member must have value less than or equal to {expected.metadata['max']}")


def of_java(pattern):
    """Python has no classes like \\p{L}."""
    classes = {
        r"\p{L}": r"\w",
        r"\p{N}": r"\d",
        r"\p{Z}": r"\s",
        r"\p{ASCII}": r"[\x00-\x7f]",
        r"\p{Print}": r"\x20-\x7e",
        r"\z": r"\Z",
    }
    for java, python in classes.items():
        pattern = pattern.replace(java, python)
    return pattern


def below(path, name):
    # AWS writes the first letter in lower case.
    name = name[:1].lower() + name[1:]
    return f"{path}.{name}" if path else name


def unsatisfied(given, path, constraint):
    value(f"Value '{given}' at '{path}' failed to satisfy constraint: {constraint}")


def wrong_type(given, expected, path):
    shape(f"{path or expected.name}: {given!r} is not of type {expected.type_name}")


def shape(message):
    complaints.append({"kind": "shape", "message": message})


def value(message):
    complaints.append({"kind": "value", "message": message})


main()
