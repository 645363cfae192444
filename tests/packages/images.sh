#!/usr/bin/env bash
# Builds the images of packaging/Containerfile and tries them, without a registry: the base image is a minimal Debian of
# debootstrap, under the name that the file gives to Debian's own.
#   tests/packages/images.sh
# Needs root, debootstrap and buildah; 77 (skipped) where it has not got these. GPUMEM_PACKAGE_FLAGS: what to compile with,
# -O1 unless said. No part of continuous integration: it compiles gpumem twice more.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/packages/bare_system.sh
begin_or_skip buildah "images are built"
make_base
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
store=$(mktemp -d "$systems/images.XXXXXX")
buildah() { command buildah --root "$store/root" --runroot "$store/run" "$@"; }
trap 'buildah rm -a >/dev/null; rm -rf "$store"' EXIT
base=docker.io/library/debian:12-slim

say "The base image"
container=$(buildah from scratch)
buildah add -q "$container" "$systems/base-$release.tar" / >/dev/null
buildah run "$container" rm -f /etc/apt/apt.conf.d/keep-downloaded
buildah commit -q "$container" "$base" >/dev/null

for target in cli webhook; do
  say "The image $target"
  buildah build --pull-never --layers --build-arg FLAGS="${GPUMEM_PACKAGE_FLAGS:--O1 -DNDEBUG}" -f packaging/Containerfile \
    --target "$target" -t "localhost/$target" . > "$systems/image-$target.log" 2>&1 ||
    { tail -20 "$systems/image-$target.log" >&2; exit 1; }
done

say "Trying them"
container=$(buildah from --pull-never localhost/cli)
[ "$(buildah run "$container" -- gpumem --version)" = "gpumem $version" ]
[ "$(buildah run "$container" -- id -u)" -ne 0 ]
buildah run "$container" -- grep -q "^Eigen" /usr/local/share/doc/gpumem/NOTICE
buildah run -v "$PWD/models:/models:ro" "$container" -- gpumem estimate summaries/resnet50.torchsummary.txt --batch 32 \
  --gpu a100-40gb | grep '^replay .* yes$'
container=$(buildah from --pull-never localhost/webhook)
[ "$(buildah run "$container" -- gpumem-webhook --version)" = "gpumem-webhook $version" ]
[ "$(buildah run "$container" -- id -u)" -ne 0 ]
buildah run "$container" -- grep -q "^Eigen" /usr/local/share/doc/gpumem/NOTICE
buildah images --format '{{.Name}} {{.Size}}'
