#!/bin/sh
# Puts pycocotools and supervision into FOLDER with pip, so that exported datasets can be read by programs that we did not
# write. Nothing is installed into the system. Does nothing where it was done before with the same versions.
#
#   tests/setup/dataset-loaders.sh FOLDER
#
# Leaves FOLDER/packages: to be given to Python as PYTHONPATH.
set -eu
pins=$(cd "$(dirname "$0")" && pwd)/dataset-loaders.txt
folder=$1
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
    echo "dataset-loaders: pip could not install what dataset-loaders.txt lists; the tests need Python 3.11 or newer with pip," \
        "and its package index. Try: python3 -m pip install --requirement $pins" >&2
    exit 1
}
rm -rf "$folder/packages"
mv "$work/packages" "$folder/packages"
cp "$pins" "$folder/installed.txt"
