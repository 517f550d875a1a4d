"""Images inside requests: tf.Example records and JSON Lines. Needs only Python."""

import base64
import binascii
import json

# If an example has both, the first one counts; the second is written by TensorFlow Datasets.
IMAGE_FEATURES = ("image/encoded", "image")


class Refused(ValueError):
    """An image or request that cannot be predicted; its text is for users."""


def records(body):
    """The records of a TFRecord body with its framing; a body without framing is one record.

    A frame is the length (8 bytes, little endian), its checksum (4), the data, and their checksum (4).
    """
    found, at = [], 0
    while at < len(body):
        start = at + 12
        end = start + int.from_bytes(body[at : at + 8], "little")
        at = end + 4
        if at > len(body):
            return [body]
        found.append(body[start:end])
    return found or [body]


def image_of_example(example):
    """The encoded image in a serialized tf.Example (tensorflow/core/example/{example,feature}.proto)."""
    images, names = {}, []
    try:
        # Numbers of the fields: Example.features = 1; Features.feature = 1, a map with key = 1 and value = 2;
        # Feature.bytes_list = 1; BytesList.value = 1.
        for features in _messages(example, 1):
            for entry in _messages(features, 1):
                name = b"".join(_messages(entry, 1)).decode("utf-8", "replace")
                names.append(name)
                if name in IMAGE_FEATURES:
                    lists = (values for feature in _messages(entry, 2) for values in _messages(feature, 1))
                    images[name] = next((value for values in lists for value in _messages(values, 1)), None)
    except (IndexError, ValueError):
        raise Refused("is not a tf.Example: its fields cannot be read") from None
    for name in IMAGE_FEATURES:
        if images.get(name) is not None:
            return images[name]
    has = f"its features are {', '.join(names[:8])}" if names else "it is not a tf.Example, or has no features"
    raise Refused(f"contains no image: no bytes in a feature {' or '.join(IMAGE_FEATURES)}; {has}")


def image_of_base64(value):
    """The image in `{"b64": "…"}`."""
    text = value.get("b64") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise Refused('is not {"b64": "…"} with an image in base64')
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(f"is not valid base64: {error}") from None


def image_of_json(text):
    """The image in `{"b64": "…"}` as JSON text."""
    return image_of_base64(parsed_json(text))


def parsed_json(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"is not JSON: {error}") from None


def _messages(message, wanted):
    """The values of the length-delimited fields with the number `wanted` (protobuf.dev/programming-guides/encoding)."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(message, at)
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field has the unknown type {kind}")
        if at + length > len(message):
            raise ValueError("a field is longer than its message")
        if kind == 2 and tag >> 3 == wanted:
            yield message[at : at + length]
        at += length


def _varint(message, at):
    number = 0
    for place in range(10):
        byte = message[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise ValueError("a number is not terminated")
