"""Measures the time until a folder of JPEGs is on screen in Spotcheck, qimgv and gthumb, one after another.

usage: python run.py FOLDER [--spotcheck PATH] [--rounds 3] [--only NAME]

Linux only; needs Xvfb, numpy, and the programs.

Each program starts in a virtual display whose pixels are in a file. Images are on screen when more than a few percent
of the pixels are colorful, because the programs themselves are gray. Memory (PSS) and CPU time of the program and its
children are read SETTLED seconds later. The first round is cold (without the program's own cache), later ones are warm;
the files are always in the page cache.
Spotcheck does not predict the images, because the other programs do not either.
"""
import argparse
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DISPLAY = ":86"
WIDTH, HEIGHT = 1280, 800
COLORFUL_SHARE = 0.03
SETTLED = 5.0
TIMEOUT = 60.0


class Screen:
    def __init__(self, folder):
        self.server = subprocess.Popen(
            ["Xvfb", DISPLAY, "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", folder, "-nolisten", "tcp", "-noreset"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = Path(folder) / "Xvfb_screen0"
        socket = Path(f"/tmp/.X11-unix/X{DISPLAY[1:]}")
        while not (path.exists() and path.stat().st_size > WIDTH * HEIGHT * 4 and socket.exists()):
            time.sleep(0.01)
        self.file = path.open("rb")
        self.memory = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)

    def colorful(self):
        """The fraction of pixels whose channels differ a lot, in every fourth row and column."""
        pixels = np.frombuffer(self.memory, np.uint8)[-WIDTH * HEIGHT * 4:].reshape(HEIGHT, WIDTH, 4)
        pixels = pixels[::4, ::4, :3].astype(np.int16)
        return float((pixels.max(axis=2) - pixels.min(axis=2) > 40).mean())

    def close(self):
        self.server.terminate()
        self.server.wait()


def family(pid):
    pids = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        pids += [child for text in task.read_text().split() for child in family(int(text))]
    return pids


def pss_mb(pids):
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1000


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def start(screen, command, home):
    environment = {**os.environ, "DISPLAY": DISPLAY, "HOME": home, "XDG_RUNTIME_DIR": home,
                   "SPOTCHECK_HOME": f"{home}/spotcheck", "XDG_CONFIG_HOME": f"{home}/.config",
                   "XDG_CACHE_HOME": f"{home}/.cache", "XDG_DATA_HOME": f"{home}/.local/share"}
    environment.pop("WAYLAND_DISPLAY", None)
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while screen.colorful() < COLORFUL_SHARE:
            if time.perf_counter() - begun > TIMEOUT or process.poll() is not None:
                return None
            time.sleep(0.005)
        seconds = time.perf_counter() - begun
        time.sleep(SETTLED)
        pids = family(process.pid)
        return seconds, pss_mb(pids), cpu_seconds(pids)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        while screen.colorful() > COLORFUL_SHARE / 3:
            time.sleep(0.02)


def prepare(home):
    """Spotcheck opens images without predicting them."""
    config = Path(home) / "spotcheck" / "config"
    config.mkdir(parents=True)
    (config / "settings.json").write_text('{"predict_on_open": false}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--spotcheck", type=Path, default=ROOT / "target" / "release" / "spotcheck")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    options = parser.parse_args()
    contenders = {
        "spotcheck": [options.spotcheck, options.folder],
        "qimgv": ["qimgv", options.folder],
        "gthumb": ["gthumb", options.folder],
    }
    if options.only:
        contenders = {options.only: contenders[options.only]}
    missing = [command[0] for command in contenders.values() if not shutil.which(command[0])]
    if missing or not shutil.which("Xvfb"):
        sys.exit(f"needs Xvfb and {missing}")
    with tempfile.TemporaryDirectory() as scratch:
        screen = Screen(scratch)
        try:
            for name, command in contenders.items():
                with tempfile.TemporaryDirectory() as home:
                    prepare(home)
                    rounds = [start(screen, command, home) for _ in range(options.rounds)]
                if None in rounds:
                    print(f"{name:10} showed no images within {TIMEOUT:.0f} s")
                    continue
                seconds, memory, cpu = rounds[0]
                print(f"{name:10} cold: {seconds:5.2f} s, {memory:4.0f} MB, {cpu:5.2f} s CPU", end="")
                if len(rounds) > 1:
                    seconds, memory, cpu = (statistics.median(column) for column in zip(*rounds[1:]))
                    print(f"   warm: {seconds:5.2f} s, {memory:4.0f} MB, {cpu:5.2f} s CPU", end="")
                print()
        finally:
            screen.close()


if __name__ == "__main__":
    main()
