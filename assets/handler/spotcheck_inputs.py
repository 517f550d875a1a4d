"""Converts an image to a model's input exactly like Spotcheck: the same numbers, bit for bit.

Spotcheck's manual explains the fields of a card. OpenCV's arithmetic is reimplemented here, so OpenCV is not needed.
"""

import typing

import numpy as np
from PIL import Image

from spotcheck_records import Refused

F32 = np.float32
# Larger images and inputs would only fill the memory.
MAX_RESIZED_SIDE = 1 << 20
MAX_INPUT_PIXELS = 1 << 26
MAX_RESIZED_PIXELS = 1 << 28
ROWS_AT_ONCE = 64


class Placement(typing.NamedTuple):
    """The position of the resized image in the tensor. Pairs are width and height, or x and y."""

    # The size of the whole resized image; `window` (left, top, width, height) is the part that is used.
    full: tuple
    window: tuple
    # The size of the tensor, and the position of the window in it.
    canvas: tuple
    offset: tuple
    # The RGB values of the pixels around the window; `None` for a value of zero after normalization.
    fill: typing.Optional[tuple]
    # From the tensor's pixels to those of the image: `x * scale + shift`.
    scale: tuple
    shift: tuple


def place(card, size):
    """`size` is that of the image."""
    (rule, values), = card["resize"].items()
    size, corner = _square(card, size)
    if rule != "keep" and max(size) > MAX_RESIZED_SIDE:
        raise Refused(f"is {size[0]} x {size[1]} pixels, with a side over {MAX_RESIZED_SIDE}; split it into tiles")
    placement = RULES[rule](size, **values)
    width, height = placement.canvas
    if rule != "keep" and width * height > MAX_INPUT_PIXELS:
        reason = f"{width} x {height} pixels, more than {MAX_INPUT_PIXELS}"
        raise RuntimeError(f"the model card asks for {reason}; correct its resize rule")
    return placement._replace(shift=tuple(shift + start for shift, start in zip(placement.shift, corner)))


def _square(card, size):
    """The size of the part to resize, and its left and top in the image."""
    square = card.get("square", "no")
    if square == "no":
        return size, (0, 0)
    side = max(size) if square.startswith("pad") else min(size)
    if side * side > MAX_RESIZED_PIXELS:
        raise Refused(f"is {size[0]} x {size[1]} pixels, too large to be made square; split it into tiles")
    if square == "crop-half-even":
        starts, ends = (tuple(round((length + sign * side) / 2) for length in size) for sign in (-1, 1))
        return tuple(max(end - start, 1) for start, end in zip(starts, ends)), starts
    corner = ((length - side) / 2 for length in size)
    return (side, side), tuple(corner if _is_exact(card) else map(int, corner))


def _is_exact(card):
    """Whether the square may lie between pixels, so that neighboring pixels contribute."""
    interpolation = card.get("interpolation", "pillow-bilinear")
    return card.get("square") == "fit" and interpolation in PILLOW and interpolation != "pillow-nearest"


def _filled(size, full):
    return Placement(full, (0, 0, *full), full, (0, 0), None, _ratios(size, full), (0.0, 0.0))


def _keep(size):
    return _filled(size, size)


def _stretch(size, *, width, height, crop=None):
    return _cropped(size, (width, height), **crop) if crop else _filled(size, (width, height))


def _short_side_crop(size, *, short_side, long_side, crop_width, crop_height, crop_offset):
    short = min(size)
    if long_side == "down":
        exact = [short_side * side / short for side in size]
    else:
        exact = [side * (short_side / short) for side in size]
    full = tuple(max(short_side, ROUNDINGS[long_side](side)) for side in exact)
    return _cropped(size, full, width=crop_width, height=crop_height, offset=crop_offset)


def _cropped(size, full, *, width, height, offset):
    """The center of the image at the size `full`."""
    crop = (width, height)
    if width > full[0] or height > full[1]:
        reason = f"crops {width}x{height} out of an image of {full[0]}x{full[1]}"
        raise RuntimeError(f"the model card {reason}; correct its resize rule")
    left, top = (ROUNDINGS[offset]((outer - inner) / 2) for outer, inner in zip(full, crop))
    scale = _ratios(size, full)
    return Placement(full, (left, top, *crop), crop, (0, 0), None, scale, (left * scale[0], top * scale[1]))


def _letterbox(
    size, *, width, height, fill, position="center", rounding="half-even", stride=None, boxes_back="each-axis"
):
    def fitted(canvas):
        gain = min(_ratios(canvas, size))
        return tuple(min(max(ROUNDINGS[rounding](side * gain), 1), room) for side, room in zip(size, (width, height)))

    canvas = (width, height)
    full = fitted(canvas)
    if stride:
        # Padding that fills whole strides is not needed.
        canvas = tuple(side + (room - side) % stride for side, room in zip(full, canvas))
    gaps = lambda full: tuple((room - side) // 2 for side, room in zip(full, canvas))
    offset = (0, 0) if position == "top-left" else gaps(full)
    # Boxes are mapped back only by the tensor, which a stride may have shrunk so much that the gain differs.
    gain = min(_ratios(canvas, size))
    scale = _ratios(size, fitted(canvas)) if boxes_back == "each-axis" else (1 / gain, 1 / gain)
    if position == "top-left":
        padding = (0, 0)
    elif boxes_back in ("each-axis", "one-ratio"):
        padding = gaps(fitted(canvas))
    else:
        padding = tuple((room - side * gain) / 2 for side, room in zip(size, canvas))
        if boxes_back == "rounded-padding":
            padding = tuple(round(side - 0.1) for side in padding)
    shift = tuple(-side * factor for side, factor in zip(padding, scale))
    fill = (fill, fill, fill) if isinstance(fill, int) else tuple(fill)
    return Placement(full, (0, 0, *full), canvas, offset, fill, scale, shift)


def _short_side_pad(size, *, short_side, max_long_side, pad_to_multiple, cut_to_multiple=1, rounding="by-padding"):
    if rounding == "by-padding" and pad_to_multiple == 1:
        return _filled(size, _short_side_to(size, short_side, max_long_side, cut_to_multiple))
    ratio = min(short_side / min(size), max_long_side / max(size))
    rounded = ROUNDINGS["down" if rounding == "by-padding" else rounding]
    full = tuple(_cut(rounded(side * ratio), cut_to_multiple) for side in size)
    canvas = tuple(-(-side // pad_to_multiple) * pad_to_multiple for side in full)
    # Other roundings scale boxes back by the common ratio of both axes, not by the rounded sizes.
    scale = _ratios(size, full) if rounding == "half-up" else (1 / ratio, 1 / ratio)
    return Placement(full, (0, 0, *full), canvas, (0, 0), None, scale, (0.0, 0.0))


def _short_side_to(size, short_side, max_long_side, multiple):
    """Like the image processors of DETR and YOLOS in transformers."""
    short, long = min(size), max(size)
    exact = short_side
    if long / short * short_side > max_long_side:
        exact = max_long_side * short / long
    rounded = round(exact)
    if short != rounded:
        long, short = int(exact * long / short), rounded
    full = (short, long) if size[0] <= size[1] else (long, short)
    return tuple(_cut(side, multiple) for side in full)


def _cut(side, multiple):
    return max(side // multiple * multiple, multiple)


ROUNDINGS = {"down": int, "half-even": round, "half-up": lambda length: int(length + 0.5)}
RULES = {
    "keep": _keep,
    "stretch": _stretch,
    "short-side-crop": _short_side_crop,
    "letterbox": _letterbox,
    "short-side-pad": _short_side_pad,
}


def _ratios(numerators, denominators):
    return tuple(numerator / denominator for numerator, denominator in zip(numerators, denominators))


def to_tensor(card, placement, image):
    """`image` resized, padded and normalized, in the layout of the card's input."""
    is_gray = card.get("channels") == "gray"
    if is_gray:
        image = image.convert("L").convert("RGB")
    interpolation = card.get("interpolation", "pillow-bilinear")
    size, corner = _square(card, image.size)
    margin = corner if _is_exact(card) else (0, 0)
    if size != image.size and not _is_exact(card):
        square = Image.new("RGB", size, "white" if card["square"] == "pad-white" else "black")
        square.paste(image, tuple(-start for start in corner))
        image, placement = square, place({**card, "square": "no"}, size)
    if interpolation == "opencv-warp":
        placement = placement._replace(window=(0, 0, *placement.canvas), offset=(0, 0))
        levels = _warped(np.asarray(image), placement)
    else:
        levels = resized(image, placement, interpolation, margin)
    fill = placement.fill
    if card.get("channels") == "bgr":
        levels = levels[..., ::-1]
        fill = fill and fill[::-1]
    is_uint8 = card["type"] == "uint8"
    channels = 1 if is_gray else 3
    tensor = np.zeros((placement.canvas[1], placement.canvas[0], channels), np.uint8 if is_uint8 else F32)
    x, y = placement.offset
    _, _, width, height = placement.window
    for channel in range(channels):
        values = np.arange(256, dtype=tensor.dtype)
        if not is_uint8:
            values = (values / F32(card["divide_by"]) - F32(card["mean"][channel])) / F32(card["std"][channel])
        if fill is not None:
            tensor[..., channel] = values[fill[channel]]
        tensor[y : y + height, x : x + width, channel] = values[levels[..., channel]]
    if card["layout"] in ("nchw", "chw"):
        tensor = tensor.transpose(2, 0, 1)
    return np.ascontiguousarray(tensor[None] if card["layout"].startswith("n") else tensor)


def resized(image, placement, interpolation, margin):
    """The pixel values of the window, `[height, width, 3]`, of the image without the margins."""
    left, top, width, height = placement.window
    if interpolation in PILLOW:
        if max(placement.full[0] * image.height, width * placement.full[1]) > MAX_RESIZED_PIXELS:
            raise Refused(f"is {image.width} x {image.height} pixels, too long for this model; split it into tiles")
        # One axis after the other, like Pillow up to version 12.0; the second one only for the cropped part.
        (x, y), size = margin, image.size
        image = image.resize((placement.full[0], size[1]), PILLOW[interpolation], (x, 0, size[0] - x, size[1]))
        image = image.crop((left, 0, left + width, image.height))
        image = image.resize((width, placement.full[1]), PILLOW[interpolation], (0, y, width, size[1] - y))
        return np.asarray(image.crop((0, top, width, top + height)))
    size = image.size
    levels = np.asarray(image)
    if interpolation == "opencv-linear" and size == (placement.full[0] * 2, placement.full[1] * 2):
        return _halved(levels[top * 2 : (top + height) * 2, left * 2 : (left + width) * 2])
    columns = _positions(left, width, placement.full[0], size[0])
    rows = _positions(top, height, placement.full[1], size[1])
    if interpolation == "opencv-cubic":
        return _interpolated_in_floats(levels, _cubic_taps(columns, size[0]), _cubic_taps(rows, size[1]))
    columns = _linear_taps(np.clip(columns.astype(F32), 0, size[0] - 1), size[0])
    rows = _linear_taps(rows.astype(F32), size[1])
    return _interpolated(
        levels, columns, rows, lambda sums, weights: weights * (sums >> 4) >> 16, lambda sums: sums + 2 >> 2
    )


PILLOW = {
    "pillow-bilinear": Image.Resampling.BILINEAR,
    "pillow-bicubic": Image.Resampling.BICUBIC,
    "pillow-lanczos": Image.Resampling.LANCZOS,
    "pillow-nearest": Image.Resampling.NEAREST,
}


def _warped(levels, placement):
    """The pixel value at the image position of each tensor pixel, black outside."""

    def taps(axis, size):
        positions = np.arange(placement.canvas[axis]) * placement.scale[axis] + placement.shift[axis]
        first = np.floor(positions)
        inputs = np.stack([first, first + 1])
        weights = np.stack([1 - (positions - first), positions - first]).astype(F32)
        return _inputs(positions, size, 2), np.where((inputs >= 0) & (inputs < size), weights, F32(0))

    return _interpolated_in_floats(levels, taps(0, levels.shape[1]), taps(1, levels.shape[0]))


def _interpolated_in_floats(levels, columns, rows):
    rounded = lambda sums: np.clip(np.rint(sums), 0, 255)
    return _interpolated(levels, columns, rows, lambda sums, weights: sums * weights, rounded)


def _halved(levels):
    """The mean of each four pixels, which OpenCV uses for linear interpolation to half of both sides."""
    rows = levels[::2].astype(np.uint16) + levels[1::2]
    return (rows[:, ::2] + rows[:, 1::2] + 2 >> 2).astype(np.uint8)


def _positions(first, count, full, size):
    """The positions of outputs among the inputs of an axis, in pixels: 0 is the center of the first input."""
    return (np.arange(first, first + count) + 0.5) * (1 / (full / size)) - 0.5


def _linear_taps(positions, size):
    """The inputs of each output, `[2, n]`, and their weights with 11 fractional bits."""
    fractions = positions - np.floor(positions)
    weights = np.rint(np.stack([1 - fractions, fractions]) * F32(2048))
    return _inputs(positions, size, 2), weights.astype(np.int32)


def _cubic_taps(positions, size):
    """The inputs of each output, `[4, n]`, and their weights: Keys' cubic with a = -0.75."""
    a = -0.75
    near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1
    fractions = positions - np.floor(positions)
    before = fractions + 1
    first = ((a * before - 5 * a) * before + 8 * a) * before - 4 * a
    second, third = near(fractions), near(1 - fractions)
    weights = np.stack([first, second, third, 1 - first - second - third])
    return _inputs(positions, size, 4), weights.astype(F32)


def _inputs(positions, size, count):
    """Indices beyond the edges repeat the outermost pixel."""
    first = np.floor(positions).astype(np.int64) + 1 - count // 2
    return np.clip(first + np.arange(count)[:, None], 0, size - 1)


def _interpolated(levels, columns, rows, weighted, rounded):
    """Columns first; `weighted` adds a row of sums to those that `rounded` turns into pixel values."""
    (column_inputs, column_weights), (row_inputs, row_weights) = columns, rows
    result = np.empty((row_inputs.shape[1], column_inputs.shape[1], 3), np.uint8)
    for start in range(0, len(result), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        needed, places = np.unique(row_inputs[:, part], return_inverse=True)
        places = places.reshape(row_inputs[:, part].shape)
        source = levels[needed]
        sums = sum(source[:, inputs] * weights[:, None] for inputs, weights in zip(column_inputs, column_weights))
        weights = row_weights[:, part, None, None]
        result[part] = rounded(sum(weighted(sums[place], weight) for place, weight in zip(places, weights)))
    return result


def _both(first, second):
    return np.array([[first, second]])


def _pixel_mask(placement, size):
    """The part of the tensor that is image, as a mask of `size`: width and height."""
    (x, y), (_, _, width, height) = placement.offset, placement.window
    columns, rows = (np.arange(side) * canvas // side for side, canvas in zip(size, placement.canvas))
    inside = (y <= rows) & (rows < y + height), (x <= columns) & (columns < x + width)
    return np.outer(*inside)[None].astype(np.float64)


def auxiliary_input(auxiliary, placement, size):
    """The value of an input other than the image, for an image of `size`."""
    if auxiliary["value"] == "pixel-mask":
        return _pixel_mask(placement, auxiliary.get("mask_size", placement.canvas))
    return SIZES[auxiliary["value"]](placement, size)


# Each has a leading batch dimension of 1.
SIZES = {
    "scale-factor": lambda placement, size: _both(placement.full[1] / size[1], placement.full[0] / size[0]),
    "input-height-width": lambda placement, size: _both(placement.canvas[1], placement.canvas[0]),
    "image-height-width": lambda placement, size: _both(size[1], size[0]),
    "image-width-height": lambda placement, size: _both(*size),
}
