"""Which of the packages that a requirements.txt lists this Python has; prints `missing NAME` and `other NAME==WANTED FOUND`.

usage: python check_requirements.py requirements.txt
"""

import importlib.metadata
import re
import sys

# The same module, for machines without a graphics card.
STAND_INS = {"onnxruntime-gpu": "onnxruntime"}

with open(sys.argv[1], encoding="utf-8") as file:
    requirements = [line.split("#")[0].strip() for line in file]
for requirement in requirements:
    name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    if not name:
        continue
    found = None
    for candidate in (name[0], STAND_INS.get(name[0])):
        try:
            found = found or (candidate and importlib.metadata.version(candidate))
        except importlib.metadata.PackageNotFoundError:
            pass
    pinned = re.search(r"==\s*([^,;\s]+)", requirement)
    if found is None:
        print("missing", requirement)
    elif pinned and pinned[1] != found:
        print("other", f"{name[0]}=={pinned[1]}", found)
