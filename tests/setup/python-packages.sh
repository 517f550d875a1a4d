#!/bin/sh
# Puts the packages that tests/setup/NAME.txt lists into FOLDER with pip: programs that we did not write, for tests to hold Spotcheck
# against. Nothing is installed into the system. Does nothing where it was done before with the same versions.
#
#   tests/setup/python-packages.sh NAME FOLDER
#
# Leaves FOLDER/packages: to be given to Python as PYTHONPATH; programs lie in its folder bin.
set -eu
name=$1
pins=$(cd "$(dirname "$0")" && pwd)/$name.txt
folder=$2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cmp -s "$pins" "$folder/installed.txt" && exit 0

work=$(mktemp -d "$folder/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
# A mirror fails once in a while. Wheels only: building numpy would take longer than all tests.
install() {
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --target "$work/packages" --requirement "$pins" >&2
}
install || { rm -rf "$work/packages"; sleep 5; install; } || {
    echo "python-packages: pip could not install what $name.txt lists; the tests need Python 3.11 or newer with pip and its" \
        "package index, on Linux (x86-64 or arm64) or macOS (arm64). Try: python3 -m pip install --requirement $pins" >&2
    exit 1
}
rm -rf "$folder/packages"
mv "$work/packages" "$folder/packages"
cp "$pins" "$folder/installed.txt"
