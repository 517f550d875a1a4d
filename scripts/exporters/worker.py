"""usage: python -m exporters.worker CASE FOLDER IMAGE…

Makes one export in FOLDER, with `expected.json`: the predictions of the package's own code."""

import importlib.metadata
import json
import pathlib
import sys

from . import CASES


def main():
    name, folder, *images = sys.argv[1:]
    case = CASES[name]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    predictions = case.make(folder, [pathlib.Path(image) for image in images])
    expected = {
        "name": case.name,
        "family": case.family,
        "package": f"{case.package} {importlib.metadata.version(case.package)}",
        "min_score": case.min_score,
        "clipped": case.clipped,
        "limit": case.limit,
        "images": predictions,
    }
    (folder / "expected.json").write_text(json.dumps(expected))


main()
