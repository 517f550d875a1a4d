"""Describes this Python, and which of the packages of a requirements.txt it has.

Prints `program PATH`, `variable NAME=VALUE` for each variable that it needs if it is started with an empty environment,
`missing REQUIREMENT`, and `other REQUIREMENT<tab>FOUND`.

usage: python look_at_python.py [requirements.txt]
"""

import importlib.metadata
import os
import re
import sys

# Folders of libraries. Windows starts no program without the last one.
NEEDED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT")

# Packages with the same module for machines without a graphics card.
STAND_INS = {"onnxruntime-gpu": "onnxruntime"}


def release(version):
    """The numbers that a version begins with: of `2.1.0rc1` and of `2.1+cpu` those of 2.1."""
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", version)
    parts = [int(number) for number in numbers[1].split(".")] if numbers else [0]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return parts


def begins_as(found, wanted):
    """Whether `1.4.2` is one of `1.4.*`."""
    wanted = [int(number) for number in re.findall(r"\d+", wanted)]
    return (release(found) + [0] * len(wanted))[: len(wanted)] == wanted


def holds(found, operator, wanted):
    """Whether a clause of a version specifier (packaging.python.org) is met, by the numbers of the release alone."""
    if wanted.endswith(".*"):
        return begins_as(found, wanted) == (operator == "==")
    if operator in ("==", "==="):
        return wanted in (found, found.split("+")[0])
    if operator == "~=":
        return release(found) >= release(wanted) and begins_as(found, wanted.rpartition(".")[0])
    return {
        "!=": release(found) != release(wanted),
        ">=": release(found) >= release(wanted),
        "<=": release(found) <= release(wanted),
        ">": release(found) > release(wanted),
        "<": release(found) < release(wanted),
    }[operator]


def version_of(name):
    for candidate in (name, STAND_INS.get(name)):
        try:
            if candidate:
                return importlib.metadata.version(candidate)
        except importlib.metadata.PackageNotFoundError:
            pass
    return None


def tell(*words):
    # Independent of the terminal's encoding, and with paths that are not text.
    sys.stdout.buffer.write(os.fsencode(" ".join(words) + "\n"))


def program_path():
    """The folder of this Python and those of the system, and no others of the user. On Windows, libraries are found by
    PATH."""
    if os.name == "nt":
        return os.environ.get("PATH", os.defpath)
    folder = [os.path.dirname(sys.executable)] if sys.executable else []
    return os.pathsep.join([*folder, "/usr/local/bin", "/usr/bin", "/bin"])


def search_path():
    """The folders of packages. Those below the user's home folder are needed, as the handler has another home."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.abspath(folder) for folder in sys.path if folder]
    return os.pathsep.join(folder for folder in folders if folder != here)


if sys.executable:
    tell("program", sys.executable)
tell("variable", f"PATH={program_path()}")
tell("variable", f"PYTHONPATH={search_path()}")
for name in NEEDED:
    if name in os.environ:
        tell("variable", f"{name}={os.environ[name]}")
requirements = []
if len(sys.argv) > 1:
    with open(sys.argv[1], encoding="utf-8") as file:
        requirements = [line.split("#")[0].strip() for line in file]
for requirement in requirements:
    name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    if not name:
        continue
    found = version_of(name[0])
    clauses = re.findall(r"(===|==|~=|!=|>=|<=|>|<)\s*([^,;\s]+)", requirement.split(";")[0])
    if found is None:
        tell("missing", requirement)
    elif not all(holds(found, operator, wanted) for operator, wanted in clauses):
        tell("other", f"{requirement}\t{found}")
