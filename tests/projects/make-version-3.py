#!/usr/bin/env python3
"""Writes version-3.spotcheck beside itself: a project as the third format had it, with the ETags of the objects that answers
belong to, but without where its run was made. Independent of Spotcheck's own code."""

import json
import sqlite3
import struct
from pathlib import Path

path = Path(__file__).with_name("version-3.spotcheck")
path.unlink(missing_ok=True)
db = sqlite3.connect(path)
db.executescript("""
PRAGMA page_size = 512;
PRAGMA application_id = 0x73706f74;
PRAGMA user_version = 3;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, run_key TEXT NOT NULL, card TEXT NOT NULL, labels TEXT NOT NULL,
    created_ms INTEGER NOT NULL);
CREATE TABLE samples (
    id INTEGER PRIMARY KEY, is_below_root INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (name, is_below_root));
CREATE TABLE answers (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, sample INTEGER NOT NULL REFERENCES samples (id),
    kind INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, classes BLOB NOT NULL, scores BLOB NOT NULL,
    failure TEXT, size_bytes INTEGER, modified_ns INTEGER, etag TEXT, PRIMARY KEY (run, sample)) WITHOUT ROWID;
CREATE TABLE boxes (
    run INTEGER NOT NULL, sample INTEGER NOT NULL, bounds BLOB NOT NULL, PRIMARY KEY (run, sample),
    FOREIGN KEY (run, sample) REFERENCES answers (run, sample) ON DELETE CASCADE) WITHOUT ROWID;
CREATE TABLE verdicts (
    sample INTEGER NOT NULL REFERENCES samples (id), run INTEGER NOT NULL, box INTEGER NOT NULL, verdict TEXT NOT NULL,
    right_class TEXT, PRIMARY KEY (sample, run, box)) WITHOUT ROWID;
CREATE TABLE notes (sample INTEGER PRIMARY KEY REFERENCES samples (id), text TEXT NOT NULL);
CREATE TABLE tags (
    sample INTEGER NOT NULL REFERENCES samples (id), tag TEXT NOT NULL, PRIMARY KEY (sample, tag)) WITHOUT ROWID;
CREATE TABLE views (name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
""")
card = {
    "id": "toy", "name": "Toy", "task": "detection", "licence": "unknown", "origin": "a test",
    "file": {"name": "model.onnx", "bytes": 1, "sha256": "00"},
    "input": {"layout": "nhwc", "type": "uint8", "resize": {"keep": {}}},
    "output": {"detection": {"boxes": "b", "labels": "l", "scores": "s", "box_format": "xyxy", "box_space": "model-pixels"}},
}
key = {
    "model_id": "toy", "weights_sha256": "00", "device": {"only": "cpu"}, "batch": None, "threads": 2,
    "keep": {"min_score": 0.005, "top_k": 5},
}
db.execute("INSERT INTO facts VALUES ('root', 's3://photos/')")
db.execute(
    "INSERT INTO runs VALUES (3, 'the old run', ?, ?, ?, 1700000000000)",
    (json.dumps(key, separators=(",", ":")), json.dumps(card), json.dumps({"1": "cat", "2": "dog"})),
)
db.execute("INSERT INTO samples VALUES (1, 1, 'a/cat.jpg')")
db.execute("INSERT INTO samples VALUES (2, 0, '/elsewhere/dog.jpg')")
db.execute(
    "INSERT INTO answers VALUES (3, 1, 2, 640, 480, ?, ?, NULL, 4711, NULL, 'abc')",
    (struct.pack("<2I", 1, 2), struct.pack("<2f", 0.75, 0.5)),
)
db.execute("INSERT INTO boxes VALUES (3, 1, ?)", (struct.pack("<8f", 1, 2, 3, 4, -5, 6.5, 700, 8),))
db.execute("INSERT INTO answers VALUES (3, 2, 0, 0, 0, x'', x'', 'the file is truncated', 12, NULL, NULL)")
db.execute("INSERT INTO verdicts VALUES (1, 3, 1, 'wrong', 'wolf')")
db.execute("INSERT INTO verdicts VALUES (2, 0, -1, 'unsure', NULL)")
db.execute("INSERT INTO notes VALUES (1, 'blurred')")
db.execute("INSERT INTO tags VALUES (1, 'night')")
db.execute("INSERT INTO views VALUES ('view', '{\"min_score\":0.5}')")
db.commit()
db.close()
