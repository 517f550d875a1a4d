#!/bin/sh
# Installs the packages of tests/setup/NAME.txt into FOLDER with pip: independent programs that tests compare
# Spotcheck with. Nothing is installed into the system. Does nothing if FOLDER already has the same versions.
#
#   tests/setup/python-packages.sh NAME FOLDER
#
# Creates FOLDER/packages for PYTHONPATH; programs are in its folder bin.
set -eu
name=$1
pins=$(cd "$(dirname "$0")" && pwd)/$name.txt
folder=$2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cmp -s "$pins" "$folder/installed.txt" && exit 0

work=$(mktemp -d "$folder/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
# A mirror fails occasionally. Wheels only: building numpy would take longer than all tests.
install() {
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --target "$work/packages" --requirement "$pins" >&2
}
install || { rm -rf "$work/packages"; sleep 5; install; } || {
    echo "python-packages: pip could not install the packages of $name.txt; the tests need Python 3.11 or newer with" \
        "pip and its package index, on Linux (x86-64 or arm64) or macOS (arm64)." \
        "Try: python3 -m pip install --requirement $pins" >&2
    exit 1
}
rm -rf "$folder/packages"
mv "$work/packages" "$folder/packages"
cp "$pins" "$folder/installed.txt"
