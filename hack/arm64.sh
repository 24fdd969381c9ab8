#!/bin/sh
# The image's file system for linux/arm64, put together and run on another machine: an emulator for each arm64 program,
# known to this user namespace alone, a Debian root unpacked into build/arm64, and the locked wheels for aarch64.
#
#   make image-arm64      # apt install debootstrap qemu-user-static; minutes, most of them downloads
#
# Debian's Python (3.11) takes the place of the one of deploy/Containerfile's base image, which needs a registry. It looks
# for packages elsewhere: hence PYTHONPATH.
set -eu
cd "$(dirname "$0")/.."
folder=build/arm64
base=$folder/base
emulator=$(command -v qemu-aarch64-static) || { echo 'apt install qemu-user-static'; exit 1; }
command -v debootstrap >/dev/null || { echo 'apt install debootstrap'; exit 1; }

if [ ! -e "$folder/.base" ]; then
  rm -rf "$base"
  mkdir -p "$base"
  debootstrap --arch=arm64 --foreign --variant=minbase --include=python3,ca-certificates bookworm "$base" >"$folder/debootstrap.log"
  for package in "$base"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$base"; done
  touch "$folder/.base"
fi

rm -rf "$base/packages" "$base/source" "$base/rootfs"
"${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --only-binary=:all: \
  --platform manylinux2014_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux_2_27_aarch64 \
  --platform manylinux_2_28_aarch64 --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
  --target "$base/packages" -r requirements-run.lock
wheel=$("${PYTHON:-python3}" -c "from hatchling.build import build_wheel; print(build_wheel('$folder'))" | tail -n 1)
"${PYTHON:-python3}" -m zipfile -e "$folder/$wheel" "$base/packages"
mkdir -p "$base/source"
cp -r deploy/image "$base/source/"

EMULATOR=$emulator BASE=$base unshare --user --map-root-user --mount --pid --fork sh -eu <<'INSIDE'
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' ':kohort-arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$EMULATOR"':F' \
  >/proc/sys/fs/binfmt_misc/register
chroot "$BASE" /usr/bin/python3 /source/image/assemble.py --packages /packages --target /rootfs
mount --rbind "$BASE/rootfs" "$BASE/rootfs"
mount -o remount,bind,ro "$BASE/rootfs"
export HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/usr/local/lib/python3.11/site-packages
chroot "$BASE/rootfs" /usr/local/bin/kohort --version
chroot "$BASE/rootfs" /usr/local/bin/python3 -c 'import aiohttp, cryptography.x509, highspy, numpy, platform, re2, uvloop; print(platform.machine())'
chroot "$BASE/rootfs" /usr/local/bin/kohort crds jobset | grep -q 'kind: JobSet'
echo 'the image works on arm64'
INSIDE
