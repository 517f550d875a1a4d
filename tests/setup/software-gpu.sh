#!/bin/sh
# Puts a Vulkan driver that computes on the CPU (SwiftShader) into FOLDER, so that the WebGPU plug-in can be tested
# without a GPU. Nothing is installed into the system. Does nothing if it was done before.
#
#   tests/setup/software-gpu.sh FOLDER
#
# Creates FOLDER/environment with one VARIABLE=value per line, which programs need to find the driver.
set -eu
folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ -e "$folder/environment" ] && exit 0

fail() {
    echo "software-gpu: $1" >&2
    exit 1
}

command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
    fail "this needs Debian's or Ubuntu's package tools (apt-get, dpkg) to fetch SwiftShader and libvulkan1"
work=$(mktemp -d "$folder/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fetch() {
    apt-get download -q "$1" >&2 && return
    # Without package lists, nothing can be downloaded.
    if [ "$(id -u)" = 0 ]; then apt-get update -q >&2; else sudo -n apt-get update -q >&2; fi
    apt-get download -q "$1" >&2
}

# Debian's chromium contains SwiftShader; Ubuntu has no such package, and Mesa's driver is recent enough there.
fetch libvulkan1 || fail "could not download the package libvulkan1; run apt-get update, then ./test again"
for package in libvulkan1_*.deb; do dpkg -x "$package" "$work/root"; done
if fetch chromium-common; then
    for package in chromium-common_*.deb; do dpkg -x "$package" "$work/chromium"; done
fi
driver=$(find "$work" -name vk_swiftshader_icd.json | head -n 1)
rm -rf "$folder/driver" "$folder/lib"
mkdir -p "$folder/driver" "$folder/lib"
find "$work/root" -name 'libvulkan.so*' -exec cp -P {} "$folder/lib/" \;
if [ -n "$driver" ]; then
    cp "$driver" "$(dirname "$driver")/libvk_swiftshader.so" "$folder/driver/"
    driver=$folder/driver/vk_swiftshader_icd.json
else
    driver=$(find /usr/share/vulkan/icd.d -name 'lvp_icd*.json' 2>/dev/null | head -n 1)
    [ -n "$driver" ] || fail "no software Vulkan driver was found; run apt-get install mesa-vulkan-drivers and ./test"
fi
cat >"$folder/environment.new" <<ENVIRONMENT
VK_ICD_FILENAMES=$driver
LD_LIBRARY_PATH=$folder/lib
ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1
ENVIRONMENT
mv "$folder/environment.new" "$folder/environment"
