"""Opening the outputs of a job as a run, compared with obstore's plain fetch of the same objects from the same S3
server in one run; and reading lines.

usage: python run.py [--rounds 3] [--outputs 100000] [--lines 100000] [--bench PATH] [--spotcheck PATH]

README.md describes the comparison. The server and the use of obstore are those of benches/s3.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "s3"))
import importlib.util

spec = importlib.util.spec_from_file_location("s3_bench", HERE.parent / "s3" / "run.py")
s3 = importlib.util.module_from_spec(spec)
spec.loader.exec_module(s3)

LABELS = ["person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light"]


def prediction(number):
    """A response of our container, 1.2 KB: a detection with thirteen boxes that differ between images."""
    boxes = [{"box": [1.5 + each, 2.25 + number % 97, 300.125 + each, 260.0625], "class_id": 1 + (each + number) % 10,
              "label": LABELS[(each + number) % 10], "score": 0.96 - each / 16 - number % 13 / 1000}
             for each in range(13)]
    line = {"status": "ok", "width": 640, "height": 480, "model": "bench", "task": "detection", "detections": boxes}
    return json.dumps(line, separators=(",", ":")).encode()


def put_share(filer, count, share):
    numbers = range(share, count, s3.UPLOADERS)
    s3.put(filer, ((f"/buckets/{s3.BUCKET}/photos/{number:06}.jpg", b"a photo") for number in numbers))
    s3.put(filer, ((f"/buckets/{s3.BUCKET}/out/{number:06}.jpg.out", prediction(number)) for number in numbers))


def fill(filer, count):
    with ProcessPoolExecutor(s3.UPLOADERS) as pool:
        for each in [pool.submit(put_share, filer, count, share) for share in range(s3.UPLOADERS)]:
            each.result()


def open_run(options, count, environment):
    """Seconds of reading, seconds of the whole command, its CPU seconds and its peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.spotcheck, "transform", "fetch", f"s3://{s3.BUCKET}/out/", f"s3://{s3.BUCKET}/photos/",
                   "--project", Path(folder) / "p.spotcheck", "--out", Path(folder) / "out.jsonl"]
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            _, seconds, cpu, memory = run(command, environment, errors)
        said = log.read_text()
        # Line by line, because a child's memory starts with that of its parent process.
        with (Path(folder) / "out.jsonl").open("rb") as written:
            lines = sum(1 for _ in written)
    if lines != count:
        sys.exit(f"not all outputs were read:\n{said}")
    return float(re.search(r"images in ([0-9.]+) s", said)[1]), seconds, cpu, memory


def run(command, environment, errors):
    import os
    import time

    begun = time.perf_counter()
    command = [str(part) for part in command]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} failed: {Path(errors.name).read_text()}")
    return None, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def outputs(options, count):
    with s3.server() as (endpoint, filer, _):
        fill(filer, count)
        environment = s3.environment_for(endpoint)
        rows = []
        for _ in range(options.rounds):
            worker = [sys.executable, HERE.parent / "s3" / "run.py", "--worker", "obstore", "fetch", endpoint, "out"]
            text, _, cpu, memory = s3.run(worker, environment)
            rows.append((json.loads(text)["seconds"], cpu, memory, *open_run(options, count, environment)))
    fetched, fetch_cpu, fetch_memory, read, whole, cpu, memory = (statistics.median(column) for column in zip(*rows))
    print(f"{count} outputs of {len(prediction(0))} bytes, median of {options.rounds} rounds")
    print(f"obstore, fetching:                  {count / fetched:7.0f} objects/s, {fetch_cpu:.1f} s CPU,"
          f" {fetch_memory:.0f} MB")
    print(f"Spotcheck, reading into a project:  {count / read:7.0f} objects/s, {fetched / read:.2f} of obstore's rate")
    print(f"Spotcheck, the whole command:       {count / whole:7.0f} objects/s, {cpu:.1f} s CPU, {memory:.0f} MB")


def lines(options):
    s3.WORK.mkdir(parents=True, exist_ok=True)
    path = s3.WORK / "lines.jsonl"
    with path.open("wb") as file:
        for number in range(options.lines):
            file.write(prediction(number) + b"\n")
    took = []
    for _ in range(options.rounds):
        said = subprocess.run([options.bench, path], check=True, capture_output=True, text=True).stdout
        took.append(json.loads(said)["seconds"])
    path.unlink()
    print(f"{options.lines} lines of JSON on one core: {statistics.median(took):.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--outputs", type=int, default=100_000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--bench", type=Path, help="path printed by `cargo bench --bench outputs --no-run`, for lines")
    parser.add_argument("--spotcheck", type=Path, default=s3.ROOT / "target" / "release" / "spotcheck")
    options = parser.parse_args()
    if not options.spotcheck.exists():
        sys.exit(f"{options.spotcheck} is missing: cargo build --release")
    s3.WORK.mkdir(parents=True, exist_ok=True)
    if options.bench:
        lines(options)
    # The smaller number shows how memory depends on it.
    for count in (options.outputs // 4, options.outputs):
        outputs(options, count)


if __name__ == "__main__":
    main()
