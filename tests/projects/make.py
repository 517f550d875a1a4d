#!/usr/bin/env python3
"""Writes version-N.spotcheck to its own folder for each N before the current one: a project in that format. Independent
of Spotcheck's own code.

1 has neither tags nor the state of the predicted files; 2 has both, but no ETags; 3 has them, but not where a run was
made; 4 has that, but no warnings; 5 has them, but no drawn boxes and reviewers; 6 has them, but no verdicts on labels; 7 has
them, but no images that go back to the labeler; 8 has them, but no runners-up."""

import json
import sqlite3
import struct
from pathlib import Path

# The other columns of the table of predictions.
STAMP_COLUMNS = {
    1: "",
    2: "size_bytes INTEGER, modified_ns INTEGER, ",
    3: "size_bytes INTEGER, modified_ns INTEGER, etag TEXT, ",
}
STAMP_COLUMNS[4] = STAMP_COLUMNS[3]
STAMP_COLUMNS[5] = STAMP_COLUMNS[6] = STAMP_COLUMNS[7] = STAMP_COLUMNS[8] = STAMP_COLUMNS[3] + "warnings TEXT, "
# Of the two images that have a prediction.
STAMPS = {1: ((), ()), 2: ((4711, 1700000000000000001), (12, None)), 3: ((4711, None, "abc"), (12, None, None))}
STAMPS[4] = STAMPS[3]
STAMPS[5] = STAMPS[6] = STAMPS[7] = STAMPS[8] = ((4711, None, "abc", '["is damaged"]'), (12, None, None, None))
TAGS = """CREATE TABLE tags (
    sample INTEGER NOT NULL REFERENCES samples (id), tag TEXT NOT NULL, PRIMARY KEY (sample, tag)) WITHOUT ROWID;
"""
TABLES = """
PRAGMA page_size = 512;
PRAGMA application_id = 0x73706f74;
PRAGMA user_version = %(version)d;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, run_key TEXT NOT NULL, card TEXT NOT NULL, labels TEXT
    NOT NULL, created_ms INTEGER NOT NULL);
CREATE TABLE samples (
    id INTEGER PRIMARY KEY, is_below_root INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (name, is_below_root));
CREATE TABLE answers (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, sample INTEGER NOT NULL REFERENCES samples (id),
    kind INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, classes BLOB NOT NULL, scores BLOB NOT NULL,
    failure TEXT, %(stamp_columns)sPRIMARY KEY (run, sample)) WITHOUT ROWID;
CREATE TABLE boxes (
    run INTEGER NOT NULL, sample INTEGER NOT NULL, bounds BLOB NOT NULL, PRIMARY KEY (run, sample),
    FOREIGN KEY (run, sample) REFERENCES answers (run, sample) ON DELETE CASCADE) WITHOUT ROWID;
CREATE TABLE verdicts (
    sample INTEGER NOT NULL REFERENCES samples (id), run INTEGER NOT NULL, box INTEGER NOT NULL, verdict TEXT NOT NULL,
    right_class TEXT, %(verdict_columns)sPRIMARY KEY (sample, run, box)) WITHOUT ROWID;
CREATE TABLE notes (sample INTEGER PRIMARY KEY REFERENCES samples (id), text TEXT NOT NULL);
%(tags)sCREATE TABLE views (name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
"""
CARD = {
    "id": "toy",
    "name": "Toy",
    "task": "detection",
    "license": "unknown",
    "origin": "a test",
    "file": {"name": "model.onnx", "bytes": 1, "sha256": "00"},
    "input": {"layout": "nhwc", "type": "uint8", "resize": {"keep": {}}},
    "output": {
        "detection": {"boxes": "b", "labels": "l", "scores": "s", "box_format": "xyxy", "box_space": "model-pixels"}
    },
}


def write(version):
    path = Path(__file__).with_name(f"version-{version}.spotcheck")
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    tags = TAGS if version > 1 else ""
    columns = {
        "stamp_columns": STAMP_COLUMNS[version],
        "verdict_columns": "bounds TEXT, reviewer TEXT, " if version >= 6 else "",
    }
    db.executescript(TABLES % {"version": version, "tags": tags, **columns})
    in_s3 = version >= 3
    key = {
        "model_id": "toy",
        "weights_sha256": "00",
        "device": {"only": "cpu"},
        "batch": None,
        "threads": 2,
        "keep": {"min_score": 0.005 if in_s3 else 0.25, "top_k": 5},
    }
    if version >= 4:
        key["made"] = "here"
    key = json.dumps(key, separators=(",", ":") if in_s3 else None)
    db.execute("INSERT INTO facts VALUES ('root', ?)", ("s3://photos/" if in_s3 else "/photos",))
    db.execute(
        "INSERT INTO runs VALUES (3, 'the old run', ?, ?, ?, 1700000000000)",
        (key, json.dumps(CARD), json.dumps({"1": "cat", "2": "dog"})),
    )
    db.execute("INSERT INTO samples VALUES (1, 1, 'a/cat.jpg')")
    db.execute("INSERT INTO samples VALUES (2, 0, '/elsewhere/dog.jpg')")
    cat = (3, 1, 2, 640, 480, struct.pack("<2I", 1, 2), struct.pack("<2f", 0.75, 0.5), None)
    dog = (3, 2, 0, 0, 0, b"", b"", "the file is truncated")
    for prediction, stamp in zip((cat, dog), STAMPS[version]):
        row = prediction + stamp
        db.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(row))})", row)
    db.execute("INSERT INTO boxes VALUES (3, 1, ?)", (struct.pack("<8f", 1, 2, 3, 4, -5, 6.5, 700, 8),))
    into = "INSERT INTO verdicts (sample, run, box, verdict, right_class"
    db.execute(f"{into}) VALUES (1, 3, 1, 'wrong', 'wolf')")
    db.execute(f"{into}) VALUES (2, 0, -1, 'unsure', NULL)")
    if version >= 6:
        db.execute(f"{into}, bounds, reviewer) VALUES (1, 3, 2, 'added', 'fox', '[1.5,2.0,30.0,40.0]', 'Ann')")
    if version >= 7:
        db.execute(f"{into}, bounds) VALUES (1, 0, 0, 'spurious', 'owl', '[1.0,2.0,9.5,8.0]')")
    if version >= 8:
        db.execute(f"{into}) VALUES (2, 3, -1, 'returned', NULL)")
    db.execute("INSERT INTO notes VALUES (1, 'blurred')")
    if tags:
        db.execute("INSERT INTO tags VALUES (1, 'night')")
    db.execute("INSERT INTO views VALUES ('view', '{\"min_score\":0.5}')")
    db.commit()
    db.close()


for version in STAMPS:
    write(version)
