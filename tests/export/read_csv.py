"""Reads an exported table with Python's csv."""

import csv
import json
import sys

with open(sys.argv[1], encoding="utf-8", newline="") as file:
    reader = csv.reader(file, strict=True)
    header = next(reader)
    rows = list(reader)
named = [dict(zip(header, row)) for row in rows]
for row in named:
    for name in ("image", "label", "note", "tags", "error", "uri"):
        assert not row[name].startswith(("=", "+", "-", "@", "\t", "\r")), row
print(
    json.dumps(
        {
            "boxes": [
                [row["image"], row["label"], *(float(row[edge]) for edge in ("x1", "y1", "x2", "y2"))]
                for row in named
                if row["x1"]
            ],
            "without_box": sorted([row["image"], row["status"]] for row in named if not row["x1"]),
            "notes": sorted({row["note"] for row in named if row["note"]}),
            "all_rows_have_all_cells": all(len(row) == len(header) for row in rows),
        }
    )
)
