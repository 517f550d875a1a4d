"""Compares the time of `spotcheck predict` with a plain Python script and onnxruntime alone; README.md describes them.

usage: python run.py [--rounds 5] [--images 500] [--model efficientnet-lite0|resnet50] [--spotcheck PATH]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import make_images
import make_resnet50
import onnxruntime

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "target" / "bench"
# The cost of startup is measured on this many images and subtracted.
FEW = 20


def timed(command):
    """Wall and CPU seconds of a process with all its threads."""
    environment = {**os.environ, "SPOTCHECK_HOME": str(WORK / "home"), "ORT_DYLIB_PATH": runtime_library()}
    start = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{errors.decode()}")
    return wall, usage.ru_utime + usage.ru_stime


def runtime_library():
    """The library in the Python package, which every contender uses."""
    folder = Path(onnxruntime.__file__).parent / "capi"
    return str(next(path for path in folder.iterdir() if path.name.startswith(("libonnxruntime.so", "libonnxruntime.1"))
                    or path.name == "onnxruntime.dll"))


def milliseconds_an_image(command, count):
    """Wall and CPU time of the images after the first few."""
    few, all_of_them = timed(command(FEW)), timed(command(count))
    return tuple((many - start_up) * 1000 / (count - FEW) for many, start_up in zip(all_of_them, few))


def contenders(spotcheck, model, weights, images):
    """Name and command for a number of images. Only ResNet-50 is outside Spotcheck's own folders."""
    recipe = "lite0" if model == "efficientnet-lite0" else "resnet"
    named = model if model == "efficientnet-lite0" else weights
    results = WORK / "results"
    results.mkdir(exist_ok=True)
    return {
        "spotcheck": lambda count: [spotcheck, "predict", images, "--model", named, "--device", "cpu", "--limit", count,
                                    "--out", results / f"{model}-spotcheck.jsonl"],
        "python script": lambda count: [sys.executable, HERE / "python_script.py", weights, recipe, images, count,
                                        results / f"{model}-python.jsonl"],
        "onnxruntime alone": lambda count: [sys.executable, HERE / "onnxruntime_alone.py", weights, count],
    }


def largest_difference(model, count):
    """The largest score difference between Spotcheck and the script, over common classes; the best class must match."""
    def read(who):
        lines = (WORK / "results" / f"{model}-{who}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    ours, theirs = read("spotcheck"), read("python")
    if len(ours) != count or len(theirs) != count:
        sys.exit(f"{len(ours)} and {len(theirs)} predictions for {count} images")
    largest = 0.0
    for one, other in zip(ours, theirs):
        scores = {entry["index"]: entry["score"] for entry in other["classes"]}
        shared = [abs(entry["score"] - scores[entry["index"]]) for entry in one["classes"] if entry["index"] in scores]
        if not shared:
            sys.exit(f"no class in common: {one} {other}")
        largest = max(largest, *shared)
    return largest


def compare(model, weights, options, images):
    commands = contenders(options.spotcheck, model, weights, images)
    for name in ["spotcheck", "python script"]:
        timed(commands[name](options.images))
    difference = largest_difference(model, options.images)
    rounds = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            rounds[name].append(milliseconds_an_image(command, options.images))
    medians = {
        name: tuple(statistics.median(column) for column in zip(*figures)) for name, figures in rounds.items()
    }
    print(f"\n{model}: {options.images} images, {os.cpu_count()} cores, median of {options.rounds} rounds; "
          f"scores differ by at most {difference:.1e}\n")
    print("| | wall ms an image | CPU ms an image | spotcheck's wall is |")
    print("|---|---|---|---|")
    for name, (wall, cpu) in medians.items():
        lowest, highest = min(figure[0] for figure in rounds[name]), max(figure[0] for figure in rounds[name])
        # The contenders of a round ran under the same conditions, so its ratios are more stable than those of medians.
        ratios = [ours[0] / theirs[0] for ours, theirs in zip(rounds["spotcheck"], rounds[name])]
        ratio = "" if name == "spotcheck" else f"{statistics.median(ratios):.2f} of it"
        print(f"| {name} | {wall:.2f} ({lowest:.2f} to {highest:.2f}) | {cpu:.2f} | {ratio} |")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--model", choices=["efficientnet-lite0", "resnet50"])
    parser.add_argument("--spotcheck", type=Path, default=ROOT / "target" / "release" / "spotcheck")
    options = parser.parse_args()
    if not options.spotcheck.exists():
        sys.exit(f"{options.spotcheck} is missing: cargo build --release")
    images = WORK / "images"
    make_images.make(images, options.images)
    if options.model != "resnet50":
        compare("efficientnet-lite0", ROOT / "models" / "efficientnet-lite0" / "model.onnx", options, images)
    if options.model != "efficientnet-lite0":
        compare("resnet50", make_resnet50.make(WORK / "resnet50"), options, images)


if __name__ == "__main__":
    main()
