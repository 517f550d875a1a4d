"""Duplicates after planting 20 altered copies of the sample images, as Spotcheck and FiftyOne Brain find them.

usage: python planted.py SPOTCHECK [FOLDER]      (pip install numpy pillow scikit-learn fiftyone==1.22.1)
SPOTCHECK is the program. Four copies each are identical, recompressed, halved, mirrored and cropped to 80%. FOLDER can
contain more images, none of which is a copy. FiftyOne's thresholds are distances: 1 minus the similarity. Its own code
(`fiftyone.brain.similarity.DuplicatesMixin`) gets the vectors that Spotcheck exports, because it needs no database then.
"""

import collections
import csv
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageOps

KINDS = ("same", "recompressed", "resized", "mirrored", "cropped")
THRESHOLDS = (0.95, 0.9, 0.8, 0.7)


def plant(folder):
    samples = pathlib.Path(__file__).parents[2] / "assets/samples"
    originals = sorted(path for path in samples.iterdir() if path.suffix in (".png", ".jpg"))
    # Listed after the originals.
    copies = folder / "z"
    copies.mkdir()
    for at, path in enumerate(originals):
        shutil.copy(path, folder)
        image = Image.open(path).convert("RGB")
        width, height = image.size
        to = {kind: copies / f"{kind}-{path.stem}.jpg" for kind in KINDS}
        if at % 2 == 0:
            shutil.copy(path, copies / f"same-{path.name}")
            image.save(to["recompressed"], quality=50)
        else:
            image.resize((width // 2, height // 2)).save(to["resized"])
            ImageOps.mirror(image).save(to["mirrored"])
        if at >= 4:
            left, top = width // 10, height // 10
            image.crop((left, top, left + width * 4 // 5, top + height * 4 // 5)).save(to["cropped"])


def report(name, groups):
    """`groups` are lists of paths, the kept image first."""
    found, false = collections.Counter(), 0
    for first, *others in groups:
        of = lambda path: pathlib.Path(path).stem.split("-")[-1]
        for other in others:
            kinds = [path.stem.split("-")[0] for path in map(pathlib.Path, (other, first)) if "-" in path.stem]
            is_copy = of(first) == of(other) and kinds
            found[kinds[0] if is_copy else "false"] += 1
    false = found.pop("false", 0)
    kinds = ", ".join(f"{found[kind]} {kind}" for kind in KINDS)
    print(f"{name:42} {sum(found.values()):2} of 20 ({kinds}), {false} false")


def spotcheck(program, folder, *more):
    ended = subprocess.run([program, "duplicates", folder, *more], capture_output=True, text=True)
    assert ended.returncode in (0, 3), ended.stderr
    groups = [json.loads(line) for line in ended.stdout.splitlines()]
    return [[image["uri"] for image in group["images"]] for group in groups]


def fiftyone(vectors, paths, threshold):
    import fiftyone.brain.similarity as similarity
    from sklearn.neighbors import NearestNeighbors

    class Index(similarity.DuplicatesMixin):
        total_index_size = index_size = len(paths)

        def _radius_neighbors(self, query=None, thresh=None, return_dists=False):
            return NearestNeighbors(metric="cosine").fit(vectors).radius_neighbors(radius=thresh, return_distance=False)

    kept = Index()._remove_duplicates_thresh(1 - threshold, paths)
    # The most similar kept image, as in `find_duplicates`.
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    at = [paths.index(path) for path in kept]
    groups = {path: [path] for path in kept}
    for row, path in enumerate(paths):
        if path not in groups:
            groups[kept[int(np.argmax(unit[at] @ unit[row]))]].append(path)
    return [group for group in groups.values() if len(group) > 1]


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        folder, project, array = home / "images", home / "p.spotcheck", home / "a.npy"
        folder.mkdir()
        plant(folder)
        for path in sorted(pathlib.Path(sys.argv[2]).iterdir()) if len(sys.argv) > 2 else []:
            shutil.copy(path, folder / f"more{path.name.replace('-', '')}")
        run = lambda *args: subprocess.run([program, *args], check=True, capture_output=True)
        run("predict", folder, "--model", "efficientnet-lite0", "--project", project)
        run("export", project, "--format", "embeddings", "--out", array)
        print(f"{len(list(folder.rglob('*.*')))} images, embeddings by efficientnet-lite0")
        report("Spotcheck, bytes and perceptual hashes", spotcheck(program, folder))
        for above in THRESHOLDS:
            more = ("--project", project, "--above", str(above))
            report(f"Spotcheck, and embeddings from {above}", spotcheck(program, folder, *more))
        vectors = np.load(array).astype(np.float32)
        vectors -= vectors.mean(axis=0)
        with open(array.with_suffix(".csv"), encoding="utf-8", newline="") as file:
            paths = [row["uri"] for row in csv.DictReader(file)]
        for above in THRESHOLDS:
            report(f"FiftyOne Brain, the same embeddings from {above}", fiftyone(vectors, paths, above))


if __name__ == "__main__":
    main()
