"""Times the window from the start of the process to its first frame, and measures its idle cost.

usage: python run.py [--rounds 5] [--renderer glow|wgpu] [--spotcheck PATH]

Linux only; needs Xvfb, no Python packages.

The window opens on the sample images in a virtual display whose pixels are in a file; the first frame is drawn when
they change, which Python checks every millisecond. Idle CPU is measured over a few seconds once the pixels are stable.
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

ROOT = Path(__file__).resolve().parents[2]
DISPLAY = ":87"
IDLE_SECONDS = 5
TIMEOUT_SECONDS = 30


class Screen:
    """An X server that draws into an observable file."""

    def __init__(self, folder):
        self.server = subprocess.Popen(
            ["Xvfb", DISPLAY, "-screen", "0", "1280x800x24", "-fbdir", folder, "-nolisten", "tcp", "-noreset"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = Path(folder) / "Xvfb_screen0"
        wait_until(lambda: path.exists() and path.stat().st_size > 1280 * 800 * 4)
        wait_until(lambda: Path(f"/tmp/.X11-unix/X{DISPLAY[1:]}").exists())
        self.file = path.open("rb")
        self.memory = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)

    def pixels(self):
        return self.memory[-1280 * 800 * 4:]

    def close(self):
        self.memory.close()
        self.file.close()
        self.server.terminate()
        self.server.wait()


def wait_until(condition, pause=0.001):
    end = time.perf_counter() + TIMEOUT_SECONDS
    while not condition():
        if time.perf_counter() > end:
            sys.exit("nothing happened for too long")
        time.sleep(pause)


def wait_for_rest(screen, seconds):
    """Waits until the pixels have been stable for this long; returns the time of the last change."""
    seen, since = screen.pixels(), time.perf_counter()
    end = since + TIMEOUT_SECONDS
    while time.perf_counter() - since < seconds:
        time.sleep(0.02)
        if time.perf_counter() > end:
            sys.exit("the window does not come to rest")
        now = screen.pixels()
        if now != seen:
            seen, since = now, time.perf_counter()
    return since


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(process):
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def one_round(screen, options, home):
    environment = {**os.environ, "DISPLAY": DISPLAY, "SPOTCHECK_HOME": home, "XDG_RUNTIME_DIR": home}
    environment.pop("WAYLAND_DISPLAY", None)
    empty = screen.pixels()
    start = time.perf_counter()
    process = subprocess.Popen([options.spotcheck, ROOT / "assets" / "samples", "--renderer", options.renderer],
                               env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: screen.pixels() != empty)
        first = time.perf_counter() - start
        settled = wait_for_rest(screen, 3) - start
        before = cpu_seconds(process)
        time.sleep(IDLE_SECONDS)
        idle = (cpu_seconds(process) - before) / IDLE_SECONDS
        return first * 1000, settled * 1000, idle * 100, resident_mib(process)
    finally:
        process.terminate()
        process.wait()
        wait_until(lambda: screen.pixels() == empty)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--renderer", choices=["glow", "wgpu"], default="glow")
    parser.add_argument("--spotcheck", type=Path, default=ROOT / "target" / "release" / "spotcheck")
    options = parser.parse_args()
    if not options.spotcheck.exists() or not shutil.which("Xvfb"):
        sys.exit("needs `cargo build --release` and Xvfb")
    with tempfile.TemporaryDirectory() as folder:
        screen = Screen(folder)
        try:
            with tempfile.TemporaryDirectory() as home:
                rounds = [one_round(screen, options, home) for _ in range(options.rounds)]
        finally:
            screen.close()
    first, settled, idle, memory = (statistics.median(column) for column in zip(*rounds))
    worst = max(figures[0] for figures in rounds)
    print(f"{options.renderer}, median of {options.rounds}: first frame {first:.0f} ms (worst {worst:.0f}), last change"
          " "
          f"after {settled:.0f} ms, idle {idle:.1f} % of a core, {memory:.0f} MiB")


if __name__ == "__main__":
    main()
