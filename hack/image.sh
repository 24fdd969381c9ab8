#!/bin/sh
# The image: built from deploy/Containerfile by podman or buildah, then run as its own user.
#
#   make image                    # apt install buildah debootstrap; minutes, most of them downloads
#   PYTHON=3.13-slim make image   # with this tag of a base image python that is here already
#
# Without a registry to fetch the base image from, one is made of Debian's packages: its Python is 3.11.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^__version__.*"\(.*\)"/\1/p' src/kohort/__init__.py)
image=localhost/kohort:$version
made=3.11-debian
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}"  # works in a container as well
command -v buildah >/dev/null || { echo 'apt install buildah'; exit 1; }

# ---- the base

wanted=$(sed -n 's/^ARG PYTHON=//p' deploy/Containerfile)
python=${PYTHON:-}
if [ -z "$python" ] && timeout 60 buildah pull --quiet "docker.io/library/python:$wanted" >/dev/null 2>&1; then
  python=$wanted
elif [ -z "$python" ]; then
  python=$made
  if ! buildah inspect --type image "localhost/python:$made" >/dev/null 2>&1; then
    command -v debootstrap >/dev/null || { echo 'no registry, and no debootstrap to do without: apt install debootstrap'; exit 1; }
    base=$(mktemp -d)
    trap 'rm -rf "$base"' EXIT
    debootstrap --variant=minbase --include=python3,python3-pip,python-is-python3,ca-certificates bookworm "$base" >/dev/null
    rm -f "$base"/usr/lib/python3*/EXTERNALLY-MANAGED
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$base" / >/dev/null
    buildah commit --quiet --rm "$container" "localhost/python:$made" >/dev/null
  fi
fi
echo "base image: python:$python"

# ---- built. The machine's own authorities, for those who reach packages through a proxy of theirs.

authorities=/etc/ssl/certs/ca-certificates.crt
buildah build --quiet --pull-never --file deploy/Containerfile --build-arg PYTHON="$python" \
  --volume "$authorities:$authorities:ro" --tag "$image" .

# ---- run

if podman run --rm --read-only --network none "$image" --version >/dev/null 2>&1; then
  by='podman, read-only'
  run() { program=$1 && shift && podman run --rm --read-only --network none --entrypoint "$program" "$image" "$@"; }
else
  by=buildah
  container=$(buildah from --pull-never "$image")
  run() { buildah run "$container" -- "$@"; }
fi
test "$(run /usr/local/bin/kohort --version)" = "kohort $version"
run /usr/local/bin/kohort crds jobset | grep 'kind: JobSet' >/dev/null
test "$(run /usr/local/bin/python3 -c 'import os;print(os.getuid())')" = 65532
if run /bin/sh -c true 2>/dev/null; then echo 'there is a shell in it'; exit 1; fi
buildah inspect --type image "$image" | grep '"org.opencontainers.image.version": "'"$version"'"' >/dev/null
[ "$by" = buildah ] && buildah rm "$container" >/dev/null
echo "$image: built by $(buildah --version), run by $by"
