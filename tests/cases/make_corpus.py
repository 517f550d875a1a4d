"""Small binary files for the tests of hostile input, by a writer independent of Spotcheck.

usage: python make_corpus.py      Writes into tfrecord/, tf_example/, graph_names/ and project/ next to this script.
"""
import os, shutil, sqlite3, struct, zlib

HERE = os.path.dirname(os.path.abspath(__file__))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values):
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))
    if isinstance(values[0], float):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(3, field(1, b"".join(varint(value) for value in values)))


def example(features):
    entries = (field(1, field(1, key.encode()) + field(2, feature(values))) for key, values in features.items())
    return field(1, b"".join(entries))


def png():
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0\0\xff\0")) + chunk(b"IEND", b"")


WHOLE = {
    "image/encoded": [png()],
    "image/filename": [b"cat.png"],
    "image/class/label": [282],
    "image/class/text": [b"tabby cat"],
    **{f"image/object/bbox/{side}": [at, at / 2] for side, at in [("xmin", 0.25), ("ymin", 0.0), ("xmax", 0.875), ("ymax", 1.0)]},
    "image/object/class/label": [17, 300],
    "image/object/class/text": [b"cat", b"cup"],
}


def onnx():
    """A graph of two nodes with weights between them in the file."""
    node = lambda name: field(1, b"x") + field(2, b"y") + field(3, name) + field(4, b"Relu")
    weights = field(5, varint(1 << 3) + varint(2) + varint(2 << 3) + varint(1) + field(9, bytes(8)) + field(8, b"w"))
    graph = field(1, node(b"first")) + weights + field(1, node(b"vgg16/block1_conv1/Relu")) + field(2, b"tf2onnx")
    return varint(1 << 3) + varint(8) + field(2, b"tf2onnx") + field(7, graph) + field(8, varint(2 << 3) + varint(17))


def write(path, data):
    path = os.path.join(HERE, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def main():
    whole, bare = example(WHOLE), example({"image": [png()]})
    write("tf_example/whole", whole)
    write("tf_example/bare", bare)
    write("tfrecord/two", record(whole) + record(bare))
    write("tfrecord/one", record(bare))
    write("graph_names/vgg16.onnx", onnx())
    # As a file of today: only where a run was made is new since the third version.
    projects = os.path.join(HERE, "..", "projects")
    for version in [1, 3]:
        os.makedirs(os.path.join(HERE, "project"), exist_ok=True)
        shutil.copy(os.path.join(projects, f"version-{version}.spotcheck"), os.path.join(HERE, "project"))
    today = os.path.join(HERE, "project", "today.spotcheck")
    shutil.copy(os.path.join(projects, "version-3.spotcheck"), today)
    with sqlite3.connect(today) as database:
        database.execute("UPDATE runs SET run_key = json_set(run_key, '$.made', 'here')")
        database.execute("PRAGMA user_version = 4")
    database.close()


main()
