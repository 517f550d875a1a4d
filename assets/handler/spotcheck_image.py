"""Decodes encoded bytes to upright RGB pixels with Pillow, as Spotcheck decodes them for models."""

import contextlib
import io
import math
import os
import sys
import threading

import numpy as np
from PIL import Image, UnidentifiedImageError

from spotcheck_records import Refused

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
MAX_MEGAPIXELS = int(os.environ.get("SPOTCHECK_MAX_MEGAPIXELS") or 512)
# Pillow's own limit would warn first, with less information.
Image.MAX_IMAGE_PIXELS = None

# The maximum number of pixels per byte of a file: above it, data is missing, and no memory is allocated.
MAX_PIXELS_PER_BYTE = {"JPEG": 1024, "PNG": 8 * 1032}
# Common tools write about ten scans per progressive JPEG. Each scan is as much work as the whole image.
MIN_SCANS, MAX_SCANS = 20, 200
MAX_SCANNED_PIXELS = 2_000_000_000
# The memory limit of one decode: 3 bytes per pixel of the largest allowed image, and at least 1.5 GiB.
MAX_BYTES = max(3 << 29, MAX_MEGAPIXELS * 3_000_000)
# Images above this size are decoded one at a time.
GIANT_PIXELS = 50_000_000
_room_for_a_giant = threading.Lock()

ROWS_AT_ONCE = 256
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@contextlib.contextmanager
def opened(encoded):
    """The upright image in RGB; the first of several frames. Alpha is blended with white, 16 bits divided by 257."""
    image = _read(encoded, _open)
    with _room_for_a_giant if image.width * image.height > GIANT_PIXELS else contextlib.nullcontext():
        yield _read(encoded, lambda encoded: _turned_upright(image, _rgb(image, encoded)))


def _read(encoded, step):
    """Turns every failure of Pillow into one of the image."""
    try:
        return step(encoded)
    except Refused:
        raise
    except MemoryError:
        raise Refused("does not fit into memory") from None
    except Exception as error:
        raise Refused(f"is damaged or truncated: {error or type(error).__name__}") from error


def _open(encoded):
    if not encoded:
        raise Refused("is empty: it has no bytes")
    try:
        image = Image.open(io.BytesIO(encoded), formats=FORMATS)
    except UnidentifiedImageError:
        beginning = bytes(encoded[:16])
        known = ", ".join(FORMATS)
        raise Refused(f"is not a supported image: it begins with {beginning!r}; supported formats: {known}") from None
    pixels = image.width * image.height
    if pixels > MAX_MEGAPIXELS * 1_000_000:
        size = f"{image.width} x {image.height} is {-(-pixels // 1_000_000)} megapixels"
        raise Refused(f"is too large: {size}, more than the limit of {MAX_MEGAPIXELS} (SPOTCHECK_MAX_MEGAPIXELS)")
    if pixels > len(encoded) * MAX_PIXELS_PER_BYTE.get(image.format, pixels):
        raise Refused(f"is truncated: the {image.format} ends before its pixels do")
    if image.format == "JPEG":
        _check_scans(image, encoded.count(b"\xff\xda"))
    return image


def _check_scans(image, scans):
    """With several scans, libjpeg stores all coefficients, two bytes each, and each scan processes all of them."""
    pixels = image.width * image.height
    max_scans = min(max(MAX_SCANNED_PIXELS // max(pixels, 1), MIN_SCANS), MAX_SCANS)
    if scans > max_scans:
        raise Refused(f"is damaged: a JPEG with more than {max_scans} scans")
    if scans > 1 or image.info.get("progressive"):
        across, down = (max(layer[axis] for layer in image.layer) for axis in (1, 2))
        units = math.ceil(image.width / (8 * across)) * math.ceil(image.height / (8 * down))
        needed = pixels * 3 + sum(units * layer[1] * layer[2] * 64 * 2 for layer in image.layer)
        if needed > MAX_BYTES:
            megabytes = f"{needed // 1_000_000} MB to decode, more than the limit of {MAX_BYTES // 1_000_000}"
            raise Refused(f"needs too much memory: {megabytes}; save it as a non-progressive JPEG")


def _rgb(image, encoded):
    if _raw_mode(image).find(";16") > 0:
        return Image.fromarray(_in_rows(_from_16_bits, _values_of_16_bits(image, encoded)))
    image.load()
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        return Image.fromarray(_in_rows(_over_white, np.asarray(image.convert("RGBA"))))
    if image.mode not in ("RGB", "L", "1", "P", "CMYK", "YCbCr", "RGBX"):
        raise Refused(f"is an unsupported kind of {image.format}: its pixels are “{image.mode}”")
    # A conversion to the same mode would create a second copy.
    return image if image.mode == "RGB" else image.convert("RGB")


def _raw_mode(image):
    """The pixel layout of the file, as Pillow names it: `RGB;16B`."""
    arguments = image.tile[0][3] if image.tile else ""
    return arguments if isinstance(arguments, str) else str(arguments[0]) if arguments else ""


def _values_of_16_bits(image, encoded):
    """`[height, width, channels]` of uint16, with the key color as an alpha channel."""
    name, order = _raw_mode(image).split(";16")
    if name == "LA":
        # Two channels of two bytes each are read as four channels of one byte.
        halves = _read_as("RGBA", encoded).astype(np.uint16)
        return halves[..., 0::2] << 8 | halves[..., 1::2]
    image.load()
    values = np.asarray(image).astype(np.uint16)
    if name in ("RGB", "RGBA"):
        # Pillow keeps only the upper bytes of colors. With the other byte order, it reads the lower ones.
        order = order.replace("N", "L" if sys.byteorder == "little" else "B")
        values = values << 8 | _read_as(f"{name};16{'B' if order == 'L' else 'L'}", encoded)
    values = values.reshape(*values.shape[:2], -1)
    key = image.info.get("transparency")
    if key is None:
        return values
    opaque = np.any(values != np.asarray(key, np.uint16), axis=-1, keepdims=True)
    return np.concatenate([values, opaque * np.uint16(65535)], axis=-1)


def _read_as(raw_mode, encoded):
    """The pixels, read with a different layout than the file declares."""
    image = Image.open(io.BytesIO(encoded), formats=FORMATS)
    codec, extents, offset, arguments = image.tile[0]
    image.tile = [(codec, extents, offset, raw_mode if isinstance(arguments, str) else (raw_mode, *arguments[1:]))]
    image.load()
    return np.asarray(image)


def _in_rows(convert, values):
    """Applies `convert` to a few rows at a time, because its wide integers would need many times the image's memory."""
    rgb = np.empty((*values.shape[:2], 3), np.uint8)
    for top in range(0, len(values), ROWS_AT_ONCE):
        rows = slice(top, top + ROWS_AT_ONCE)
        rgb[rows] = convert(values[rows])
    return rgb


def _over_white(rgba):
    """Blended with white, rounded to nearest."""
    color, alpha = rgba[..., :3].astype(np.uint32), rgba[..., 3:].astype(np.uint32)
    return (color * alpha + 255 * (255 - alpha) + 127) // 255


def _from_16_bits(values):
    """Rounded to the nearest 8-bit value, after blending alpha with white in 16 bits."""
    values = values.astype(np.uint64)
    if values.shape[-1] in (1, 3):
        return (values + 128) // 257
    color, alpha = values[..., :-1], values[..., -1:]
    full = 65535 * 257
    return (color * alpha + 65535 * (65535 - alpha) + full // 2) // full


def _turned_upright(image, rgb):
    # Pillow would also treat these as EXIF; Spotcheck and cameras do not.
    for key in ("XML:com.adobe.xmp", "xmp", "Raw profile type exif"):
        image.info.pop(key, None)
    try:
        turn = UPRIGHT.get(image.getexif().get(0x0112))
    except Exception:
        # An image with broken metadata is still read.
        turn = None
    return rgb if turn is None else rgb.transpose(turn)
