"""Writes tests/cases/decode: small images of every kind, with the results of an independent decoder.

usage: python make.py           (pip install pillow==13.0.0 numpy; Pillow's libjpeg-turbo must be 3.x)

Each case is a folder with one file `image.*` and `case.json`:
  {"tolerance": T}                  decodes for models; no channel of `expected.ppm` is missed by more than T
  {"tolerance": T, "warning": "…"}  the same, with a warning that contains the text
  {"error": "…", "shown": T}        rejected for models with a message that contains the text; displayed as
                                    `expected.ppm` within T, or not at all if "shown" is missing
Expected pixels come from Pillow, except for 16 bits, which Pillow does not support: those come from NumPy.
"""

import io, json, shutil, struct, zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps
from PIL.TiffImagePlugin import IFDRational

CASES = Path(__file__).resolve().parent.parent / "cases" / "decode"
WIDTH, HEIGHT = 37, 29  # not multiples of a JPEG block
# The format's own arithmetic is not fixed to the last bit (lossy WebP, JPEG inside TIFF).
CLOSE = 6
# Two exact computations that round differently.
ROUNDING = 1


def scene(width=WIDTH, height=HEIGHT, channels=3, seed=7):
    """Gradients, a hard edge and some noise, as 16-bit values: [height, width, channels]."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [x / width, y / height, (x + y) / (width + height), np.hypot(x / width - 0.5, y / height - 0.5)]
    values = np.stack(planes[:channels], axis=-1)
    values[height // 3 : height // 2, width // 4 : width // 2] = 0.9
    values += random.normal(0, 0.02, values.shape)
    return np.clip(values * 65535, 0, 65535).astype(np.uint16)


def eight(values):
    return (values >> 8).astype(np.uint8)


def scene_image(channels=3, **kwargs):
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels]
    values = eight(scene(channels=channels, **kwargs))
    return Image.fromarray(values[..., 0] if channels == 1 else values, mode)


def encoded(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def reference(data, truncated=False):
    """Pillow's result: upright, over white, RGB."""
    ImageFile.LOAD_TRUNCATED_IMAGES = truncated
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    if "A" in image.mode or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.asarray(image.convert("RGB"))


def over_white_16(values, alpha):
    """To the nearest 8-bit value, halves do not occur: 65535 * 257 is odd."""
    values, alpha = values.astype(object), alpha.astype(object)
    numerator = values * alpha + 65535 * (65535 - alpha)
    return ((numerator * 2 + 65535 * 257) // (2 * 65535 * 257)).astype(np.uint8)


def to_8_bits(values):
    return np.rint(values / 257.0).astype(np.uint8)


def write(name, data, extension, expected=None, tolerance=0, error=None, warning=None):
    folder = CASES / name
    folder.mkdir(parents=True)
    (folder / f"image.{extension}").write_bytes(data)
    case = {"error": error} if error else {"tolerance": tolerance}
    if warning is not None:
        case["warning"] = warning
    if expected is not None:
        height, width, _ = expected.shape
        (folder / "expected.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + expected.tobytes())
        if error:
            case["shown"] = tolerance
    (folder / "case.json").write_text(json.dumps(case, ensure_ascii=False) + "\n")


def good(name, data, extension, tolerance=0, expected=None):
    write(name, data, extension, reference(data) if expected is None else expected, tolerance)


def warned(name, data, extension, warning):
    """Pillow decodes it without a warning."""
    write(name, data, extension, reference(data), warning=warning)


def bad(name, data, extension, error):
    write(name, data, extension, error=error)


# --- JPEG -----------------------------------------------------------------------------------------------------------


def segments(jpeg):
    """(marker, start of the marker, end of the segment) up to the first scan."""
    position = 2
    while True:
        marker, length = jpeg[position + 1], struct.unpack(">H", jpeg[position + 2 : position + 4])[0]
        yield marker, position, position + 2 + length
        position += 2 + length
        if marker == 0xDA:
            return


def without(jpeg, kind):
    """The file without its segments of a kind."""
    for marker, start, end in reversed(list(segments(jpeg))):
        if marker == kind:
            jpeg = jpeg[:start] + jpeg[end:]
    return jpeg


def patched(data, position, new):
    return data[:position] + new + data[position + len(new) :]


def with_size(jpeg, width, height):
    start = next(start for marker, start, _ in segments(jpeg) if marker in (0xC0, 0xC1, 0xC2))
    return patched(jpeg, start + 5, struct.pack(">HH", height, width))


def data_start(jpeg):
    return next(end for marker, _, end in segments(jpeg) if marker == 0xDA)


def with_adobe_transform(jpeg, transform):
    start = next(start for marker, start, _ in segments(jpeg) if marker == 0xEE)
    return patched(jpeg, start + 4 + 11, bytes([transform]))


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def camera_exif():
    tags = Image.Exif()
    tags[0x010F], tags[0x0110] = "Nikon", "D90"
    tags.get_ifd(0x8769).update(
        {
            0x829A: IFDRational(1, 250),
            0x829D: 2.8,
            0x8827: 200,
            0x9003: "2026:05:01 12:30:00",
            0x920A: 50.0,
        }
    )
    tags.get_ifd(0x8825).update(
        {
            1: "N",
            2: (48.0, 51.0, 30.0),
            3: "W",
            4: (2.0, 17.0, 40.0),
        }
    )
    return tags.tobytes()


def jpeg_cases():
    rgb, gray = scene_image(), scene_image(1)
    for subsampling in ["4:4:4", "4:2:2", "4:2:0"]:
        data = encoded(rgb, "JPEG", quality=80, subsampling=subsampling)
        good("jpeg-" + subsampling.replace(":", ""), data, "jpg")
    base = encoded(rgb, "JPEG", quality=75)
    progressive = encoded(rgb, "JPEG", quality=75, progressive=True)
    good("jpeg-progressive", progressive, "jpg")
    good("jpeg-restart-markers", encoded(rgb, "JPEG", restart_marker_blocks=2), "jpeg")
    # More than eight, so their numbers restart.
    each_unit = encoded(rgb, "JPEG", quality=80, subsampling="4:4:4", restart_marker_blocks=1)
    good("jpeg-restart-each-unit", each_unit, "jpg")
    good("jpeg-restart-each-row", encoded(rgb, "JPEG", quality=90, restart_marker_rows=1), "jpg")
    for subsampling in ["4:4:4", "4:2:2", "4:2:0"]:
        for units in [1, 3, 7]:
            options = {"subsampling": subsampling, "restart_marker_blocks": units}
            data = encoded(scene_image(width=61, height=45), "JPEG", **options)
            good(f"jpeg-restart-{subsampling.replace(':', '')}-every-{units}", data, "jpg")
    good("jpeg-gray", encoded(gray, "JPEG", quality=85), "jpg")
    good("jpeg-gray-progressive", encoded(gray, "JPEG", quality=85, progressive=True), "JPG")
    good("jpeg-rgb", encoded(rgb, "JPEG", quality=90, keep_rgb=True), "jpg")
    inks = Image.fromarray(eight(scene(channels=4)), "CMYK")
    cmyk = encoded(inks, "JPEG", quality=90)
    good("jpeg-cmyk", cmyk, "jpg")
    good("jpeg-ycck", with_adobe_transform(cmyk, 2), "jpg")
    good("jpeg-cmyk-progressive", encoded(inks, "JPEG", quality=90, progressive=True), "jpg")
    good("jpeg-cmyk-unknown-adobe-transform", with_adobe_transform(cmyk, 7), "jpg")
    good("jpeg-unknown-jfif-version", patched(base, 11, b"\x02"), "jpg")
    for orientation in range(1, 9):
        data = encoded(rgb, "JPEG", quality=80, exif=exif(orientation))
        good(f"jpeg-orientation-{orientation}", data, "jpg")
    good("jpeg-orientation-9", encoded(rgb, "JPEG", exif=exif(9)), "jpg")
    good("jpeg-camera", encoded(rgb, "JPEG", quality=80, exif=camera_exif()), "jpg")
    good("jpeg-1x1", encoded(scene_image(width=1, height=1), "JPEG"), "jpg")
    wide = encoded(Image.new("L", (40000, 10), 77), "JPEG", quality=50)
    good("jpeg-40000x10", wide, "jpg", expected=reference(wide)[:, :1])
    good("jpeg-trailing-junk", base + b"some words a tool left behind", "jpg")
    # So few that libjpeg has read them with the last code.
    good("jpeg-extraneous-bytes-before-the-end", base[:-2] + b"\x00\x01\x02" + base[-2:], "jpg")
    table = next(start for marker, start, _ in segments(base) if marker == 0xC4)
    good("jpeg-extraneous-bytes-in-the-header", base[:table] + b"\x12\xff\x00\x34" + base[table:], "jpg")
    good("jpeg-two-pictures-in-one-file", base + encoded(gray, "JPEG"), "jpg")
    good("jpeg-named-png", base, "png")
    large = scene_image(width=96, height=80)
    whole = encoded(large, "JPEG", quality=75)
    middle = (data_start(whole) + len(whole)) // 2
    write("jpeg-truncated", whole[:middle], "jpg", reference(whole[:middle], truncated=True), error="is truncated")
    scans = encoded(large, "JPEG", quality=75, progressive=True)
    starts = [i for i in range(len(scans)) if scans[i : i + 2] == b"\xff\xda"]
    cut = scans[: starts[2] + 30]
    write("jpeg-truncated-progressive", cut, "jpg", reference(cut + b"\xff\xd9"), error="is truncated")
    # Pillow shows nothing of this one; its whole scans are those of the file that ends properly before the fifth.
    expected = reference(scans[: starts[4]] + b"\xff\xd9")
    write("jpeg-truncated-between-scans", scans[: starts[4] + 4], "jpg", expected, error="is truncated")
    holed = whole[:middle] + whole[middle + 60 :]
    warned("jpeg-hole-in-the-data", holed, "jpg", "premature end of data segment")
    damaged_jpeg_cases(large)
    bad("jpeg-header-only", base[: data_start(base)], "jpg", "is truncated")
    bad("jpeg-three-bytes", base[:3], "jpg", "is truncated")
    bad(
        "jpeg-before-the-first-scan",
        base[: next(start for marker, start, _ in segments(base) if marker == 0xDA)],
        "jpg",
        "is truncated",
    )
    bad("jpeg-65500x65500", with_size(base, 65500, 65500), "jpg", "is too large: 65500 x 65500 is 4291 megapixels")
    bad("jpeg-20000x20000-without-data", with_size(base, 20000, 20000), "jpg", "is truncated")
    scan = max(i for i in range(len(progressive) - 1) if progressive[i : i + 2] == b"\xff\xda")
    body = progressive[scan:-2]
    bad("jpeg-scan-bomb", progressive[:scan] + body * 250 + b"\xff\xd9", "jpg", "more than 200 scans")


def damaged_jpeg_cases(large):
    """Each is decoded or rejected in the same way, regardless of earlier images."""
    standard = encoded(large, "JPEG", quality=75)
    # Like a frame of Motion JPEG: decoders know the standard tables.
    good("jpeg-without-huffman-tables", without(standard, 0xC4), "jpg")
    own = encoded(large, "JPEG", quality=75, optimize=True)
    # The standard tables do not fit, and Pillow does not warn.
    warned("jpeg-without-its-own-huffman-tables", without(own, 0xC4), "jpg", "")
    bad("jpeg-without-quantization-tables", without(standard, 0xDB), "jpg", "is damaged")

    black = encoded(Image.new("RGB", large.size), "JPEG", quality=75)
    middle = (data_start(black) + len(black)) // 2
    warned("jpeg-black-with-a-hole", black[:middle] + black[-2:], "jpg", "premature end of data segment")
    restarts = encoded(large, "JPEG", quality=75, restart_marker_blocks=5)
    second = restarts.index(b"\xff\xd1", data_start(restarts))
    warned("jpeg-wrong-restart-marker", patched(restarts, second + 1, b"\xd5"), "jpg", "instead of RST")
    inks = Image.fromarray(eight(scene(96, 80, channels=4)), "CMYK")
    cmyk = encoded(inks, "JPEG", quality=75)
    middle = (data_start(cmyk) + len(cmyk)) // 2
    warned("jpeg-cmyk-with-a-hole", cmyk[:middle] + cmyk[middle + 40 :], "jpg", "")
    scans = encoded(large, "JPEG", quality=75, progressive=True)
    starts = [i for i in range(len(scans)) if scans[i : i + 2] == b"\xff\xda"]
    middle = (starts[1] + starts[2]) // 2
    warned("jpeg-progressive-with-a-hole", scans[:middle] + scans[middle + 20 :], "jpg", "")
    flipped = bytearray(standard)
    for at in range(data_start(standard) + 20, len(standard) - 20, 97):
        flipped[at] ^= 0x08
    # Codes that are none of the file's, but codes: no decoder can tell.
    good("jpeg-flipped-bits", bytes(flipped), "jpg")
    # One wrong bit, after which nine of ten pixels are wrong: the decoder lost its place, still found codes, and
    # finished before the data ended.
    at = data_start(standard) + 53
    lost = patched(standard, at, bytes([standard[at] ^ 0x20]))
    warned("jpeg-lost-place", lost, "jpg", "may be damaged: 25 extraneous bytes before marker 0xd9")
    # A gap and no end: the made-up pixels do not complete it.
    holed = standard[: data_start(standard) + 300] + standard[data_start(standard) + 340 : -2]
    bad("jpeg-hole-and-no-end", holed, "jpg", "is truncated")


# --- PNG ------------------------------------------------------------------------------------------------------------


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(values, depth, color, extra=b"", interlaced=False, size=None):
    """A PNG by the specification, without filters. `values` is [height, width, channels], 8 or 16 bit."""
    height, width = values.shape[:2]
    kind = ">u2" if depth == 16 else "u1"

    def rows(part):
        return b"".join(b"\0" + row.astype(kind).tobytes() for row in part)

    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        parts = [values[y::dy, x::dx] for x, y, dx, dy in passes]
        body = b"".join(rows(part) for part in parts if part.size)
    else:
        body = rows(values)
    claimed = size or (width, height)
    header = struct.pack(">IIBBBBB", *claimed, depth, color, 0, 0, int(interlaced))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", zlib.compress(body, 9))
        + chunk(b"IEND", b"")
    )


def png_cases():
    rgb = scene_image()
    data = encoded(rgb, "PNG")
    good("png-rgb", data, "png")
    good("png-named-jpg", data, "jpg")
    good("png-gray", encoded(scene_image(1), "PNG"), "png")
    good("png-gray-1-bit", encoded(scene_image(1).convert("1"), "PNG"), "png")
    good("png-gray-alpha", encoded(scene_image(2), "PNG"), "png")
    good("png-alpha", encoded(scene_image(4), "PNG"), "png")
    palette = rgb.quantize(13)
    good("png-palette", encoded(palette, "PNG"), "png")
    good("png-palette-transparency", encoded(palette, "PNG", transparency=bytes(range(0, 260, 20))), "png")
    good("png-gray-key", encoded(scene_image(1), "PNG", transparency=120), "png")
    good("png-rgb-key", encoded(rgb, "PNG", transparency=rgb.getpixel((5, 5))), "png")
    for orientation in [3, 6]:
        good(f"png-orientation-{orientation}", encoded(rgb, "PNG", exif=exif(orientation)), "png")
    values = scene(channels=4)
    good("png-interlaced", png(eight(values[..., :3]), 8, 2, interlaced=True), "png")
    good("png-rgb-16-bit", png(values[..., :3], 16, 2), "png", expected=to_8_bits(values[..., :3]))
    gray = values[..., :1]
    good("png-gray-16-bit", png(gray, 16, 0), "png", expected=np.repeat(to_8_bits(gray), 3, axis=2))
    good("png-alpha-16-bit", png(values, 16, 6), "png", expected=over_white_16(values[..., :3], values[..., 3:]))
    pair = values[..., :2]
    good(
        "png-gray-alpha-16-bit",
        png(pair, 16, 4),
        "png",
        expected=np.repeat(over_white_16(pair[..., :1], pair[..., 1:]), 3, axis=2),
    )
    good("png-1x1", encoded(scene_image(width=1, height=1), "PNG"), "png")
    # A decoder may or may not show a truncated row, so only complete rows are compared.
    flat = png(eight(scene(width=64, height=64)), 8, 2)
    bad("png-header-only", data[:33], "png", "is truncated")
    bad("png-checksum", patched(data, 60, bytes([data[60] ^ 0x55])), "png", "is damaged")
    bad("png-100000x100000", png(eight(values[..., :3]), 8, 2, size=(100_000, 100_000)), "png", "is too large")
    bad("png-22000x22000-without-data", png(eight(values[..., :3]), 8, 2, size=(22_000, 22_000)), "png", "is ")
    bad("png-zero-width", png(eight(values[..., :3]), 8, 2, size=(0, 10)), "png", "is damaged")
    write("png-truncated", flat[: len(flat) // 2], "png", eight(scene(width=64, height=64))[:20], error="is truncated")


# --- the others -----------------------------------------------------------------------------------------------------


def other_cases():
    rgb, gray, rgba = scene_image(), scene_image(1), scene_image(4)
    good("bmp-rgb", encoded(rgb, "BMP"), "bmp")
    good("bmp-palette", encoded(rgb.quantize(16), "BMP"), "bmp")
    good("bmp-1-bit", encoded(gray.convert("1"), "BMP"), "bmp")
    bad("bmp-truncated", encoded(rgb, "BMP")[:900], "bmp", "is truncated")

    good("webp-lossless", encoded(rgb, "WEBP", lossless=True), "webp")
    good("webp-lossless-alpha", encoded(rgba, "WEBP", lossless=True, exact=True), "webp")
    good("webp-lossy", encoded(rgb, "WEBP", quality=80), "webp", CLOSE)
    good("webp-lossy-alpha", encoded(rgba, "WEBP", quality=80), "webp", CLOSE)
    good("webp-orientation-8", encoded(rgb, "WEBP", lossless=True, exif=exif(8)), "webp")
    moving = encoded(rgb, "WEBP", lossless=True, save_all=True, append_images=[rgb.rotate(180)])
    good("webp-animated", moving, "webp")
    whole = encoded(rgb, "WEBP", quality=80)
    bad("webp-with-a-hole", whole[:300] + whole[310:], "webp", "is truncated")
    bad("webp-truncated", encoded(rgb, "WEBP", lossless=True)[:300], "webp", "is truncated")

    good("gif", encoded(rgb.quantize(64), "GIF"), "gif")
    good("gif-interlaced", encoded(rgb.quantize(64), "GIF", interlace=1), "gif")
    good("gif-transparent", encoded(rgb.quantize(8), "GIF", transparency=3), "gif")
    good(
        "gif-animated",
        encoded(rgb.quantize(32), "GIF", save_all=True, append_images=[rgb.rotate(180).quantize(32)]),
        "gif",
    )
    gif = encoded(rgb.quantize(64), "GIF")
    bad("gif-65535x65535", patched(gif, 6, b"\xff\xff\xff\xff"), "gif", "is too large")
    bad("gif-truncated", gif[: len(gif) // 2], "gif", "is truncated")

    for compression in ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"]:
        good(
            "tiff-" + compression.removeprefix("tiff_").replace("_", "-"),
            encoded(rgb, "TIFF", compression=compression),
            "tif",
        )
    good("tiff-jpeg", encoded(rgb, "TIFF", compression="jpeg", quality=90), "tif", CLOSE)
    good("tiff-gray", encoded(gray, "TIFF"), "tiff")
    good("tiff-1-bit", encoded(gray.convert("1"), "TIFF"), "tiff")
    good("tiff-alpha", encoded(rgba, "TIFF", compression="tiff_lzw"), "tif")
    good("tiff-cmyk", encoded(Image.fromarray(eight(scene(channels=4)), "CMYK"), "TIFF"), "tif", ROUNDING)
    bad("tiff-palette", encoded(rgb.quantize(16), "TIFF"), "tif", "is an unsupported kind of TIFF")
    values = scene(channels=1)
    good(
        "tiff-gray-16-bit",
        encoded(Image.fromarray(values[..., 0]), "TIFF"),
        "tif",
        expected=np.repeat(to_8_bits(values), 3, axis=2),
    )
    good("tiff-orientation-6", encoded(rgb, "TIFF", tiffinfo={274: 6}), "tif")
    bad(
        "tiff-float",
        encoded(Image.fromarray(scene(channels=1)[..., 0].astype(np.float32)), "TIFF"),
        "tif",
        "is an unsupported kind of TIFF",
    )
    bad("tiff-truncated", encoded(rgb, "TIFF")[:1500], "tif", "is ")

    bad("empty", b"", "jpg", "is empty")
    bad("text-named-jpg", "# Notes\nnot an image".encode(), "jpg", "begins with the text “# Notes not a")
    bad("zeros", bytes(500), "png", "begins with the bytes 00 00 00 00")
    bad("heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "heic", "is a HEIC image")


shutil.rmtree(CASES, ignore_errors=True)
jpeg_cases()
png_cases()
other_cases()
print(sum(f.stat().st_size for f in CASES.rglob("*") if f.is_file()), "bytes in", len(list(CASES.iterdir())), "cases")
