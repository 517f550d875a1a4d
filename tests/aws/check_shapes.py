"""Checks Spotcheck's requests to AWS, and the responses used by tests, against AWS's own service models (botocore).

Reads lines {"service": …, "operation": …, "kind": "request" | "answer", "body": …} and writes a line per
problem: an unknown or missing member, a wrong type, a value out of range or not among the allowed ones, a pattern that
does not match.

    python3 check_shapes.py < lines                       needs botocore
    python3 check_shapes.py least SERVICE OPERATION       writes a response with only the required members
    python3 check_shapes.py regions                       writes the regions of all partitions, one per line
"""

import json
import re
import sys

import botocore.session
import botocore.validate

SESSION = botocore.session.get_session()


def shape_of(service, operation, kind):
    model = SESSION.get_service_model(service).operation_model(operation)
    return model.input_shape if kind == "request" else model.output_shape


def problems(line):
    shape = shape_of(line["service"], line["operation"], line["kind"])
    if shape is None:
        return [f"expected nothing, got {line['body']}"] if line["body"] else []
    report = botocore.validate.ParamValidator().validate(line["body"], shape)
    found = [report.generate_report()] if report.has_errors() else []
    return found + list(values(line["body"], shape, ""))


def values(value, shape, path):
    """Checks left to the server by botocore: allowed values, patterns, and lengths."""
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, member in shape.members.items():
            if name in value:
                yield from values(value[name], member, f"{path}.{name}")
    elif shape.type_name == "list" and isinstance(value, list):
        for at, element in enumerate(value):
            yield from values(element, shape.member, f"{path}[{at}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        for key, element in value.items():
            yield from values(key, shape.key, f"{path}<key>")
            yield from values(element, shape.value, f"{path}.{key}")
    elif shape.type_name == "string" and isinstance(value, str):
        # Values of an enumeration that grows with each release are not listed here.
        if getattr(shape, "enum", None) and value not in shape.enum:
            yield f"{path}: {value} is none of {shape.enum}"
        pattern = shape.metadata.get("pattern")
        if pattern and "\\p{" not in pattern and not re.fullmatch(pattern, value):
            yield f"{path}: {value} does not match {pattern}"
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{path}: longer than {shape.metadata['max']}"
    if shape.type_name in ("integer", "long") and isinstance(value, int):
        if value > shape.metadata.get("max", value):
            yield f"{path}: larger than {shape.metadata['max']}"
    if shape.type_name in ("list", "map") and len(value) > shape.metadata.get("max", len(value)):
        yield f"{path}: more than {shape.metadata['max']}"


def least(shape):
    kind = shape.type_name
    if kind == "structure":
        return {name: least(shape.members[name]) for name in shape.required_members}
    if kind == "list":
        return [least(shape.member)] * shape.metadata.get("min", 0)
    if kind == "map":
        return {}
    if kind == "string":
        return shape.enum[0] if getattr(shape, "enum", None) else "x"
    return {"boolean": False, "timestamp": 1700000000.25}.get(kind, shape.metadata.get("min", 0))


def main():
    if sys.argv[1:2] == ["least"]:
        shape = shape_of(sys.argv[2], sys.argv[3], "answer")
        print(json.dumps(least(shape) if shape else {}))
        return
    if sys.argv[1:2] == ["regions"]:
        partitions = SESSION.get_component("data_loader").load_data("partitions")["partitions"]
        names = [name for partition in partitions for name in partition["regions"]]
        # “aws-global” is for services without a region.
        print("\n".join(sorted(name for name in names if not name.endswith("-global"))))
        return
    for text in sys.stdin:
        line = json.loads(text)
        for problem in problems(line):
            print(f"{line['operation']} {line['kind']}: {problem}")


main()
