"""CPU milliseconds for a 256 px thumbnail of a JPEG: Spotcheck, Pillow, OpenCV and vipsthumbnail in one run.

usage: python run.py --spotcheck PATH_OF_THE_BENCH [--images 300] [--rounds 5] [--folder FOLDER]

All take turns, with one thread each and files in the page cache; the fastest round of each counts, because slower ones
are due to the computer. Starting a program is excluded: Pillow and OpenCV run in this process, and the time of
vipsthumbnail for one image is subtracted. Needs vipsthumbnail.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
from PIL import Image

SIDE = 256


def cpu_ms(work, count):
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000 / count


def pillow(files):
    for path in files:
        with Image.open(path) as image:
            image.draft("RGB", (SIDE, SIDE))
            image.thumbnail((SIDE, SIDE), Image.BILINEAR)
            image.load()


def opencv(files):
    """Reduced as far as possible, which OpenCV leaves to its caller."""
    with Image.open(files[0]) as first:
        longer_side = max(first.size)
    flags = {8: cv2.IMREAD_REDUCED_COLOR_8, 4: cv2.IMREAD_REDUCED_COLOR_4, 2: cv2.IMREAD_REDUCED_COLOR_2}
    flag = next((flag for divisor, flag in flags.items() if longer_side / divisor >= SIDE), cv2.IMREAD_COLOR)
    for path in files:
        image = cv2.imread(str(path), flag)
        scale = SIDE / max(image.shape)
        if scale < 1:
            cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def vipsthumbnail(files, folder):
    """CPU seconds of the child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "VIPS_CONCURRENCY": "1"}
    command = ["vipsthumbnail", *map(str, files), "--size", str(SIDE), "-o", f"{folder}/%s.ppm"]
    subprocess.run(command, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def vips_ms(files, folder):
    one, all_of_them = vipsthumbnail(files[:1], folder), vipsthumbnail(files, folder)
    return (all_of_them - one) * 1000 / (len(files) - 1)


def spotcheck_ms(bench, folder):
    output = subprocess.run([bench, folder, str(SIDE), "1"], check=True, capture_output=True, text=True).stdout
    return float(output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spotcheck", type=Path, required=True)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="existing JPEGs, all of one size, instead of those of 1024x768")
    options = parser.parse_args()
    if not shutil.which("vipsthumbnail"):
        sys.exit("needs vipsthumbnail (libvips-tools)")
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        folder = options.folder or Path(scratch) / "images"
        if not options.folder:
            make = Path(__file__).resolve().parents[1] / "throughput" / "make_images.py"
            subprocess.run([sys.executable, make, folder, str(options.images)], check=True)
        files = sorted(folder.glob("*.jpg"))
        out = Path(scratch) / "out"
        out.mkdir()
        rounds = []
        for _ in range(options.rounds):
            rounds.append({
                "spotcheck": spotcheck_ms(options.spotcheck, folder),
                "Pillow draft": cpu_ms(lambda: pillow(files), len(files)),
                "OpenCV reduced": cpu_ms(lambda: opencv(files), len(files)),
                "vipsthumbnail": vips_ms(files, out),
            })
    best = {name: min(figures[name] for figures in rounds) for name in rounds[0]}
    for name, milliseconds in best.items():
        print(f"{name:16} {milliseconds:6.2f} ms")
    peer = min((milliseconds, name) for name, milliseconds in best.items() if name != "spotcheck")
    print(f"spotcheck takes {best['spotcheck'] / peer[0]:.2f} of {peer[1]}")


if __name__ == "__main__":
    main()
