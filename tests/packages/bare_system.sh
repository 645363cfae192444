# Sourced, from the root of the tree, by scripts that try gpumem in a bare system: a minimal Debian of this machine's release,
# in a folder. Needs root and debootstrap, and this machine's own sources of packages.
#
# Mounts are made in a mount namespace of each command, and are gone when it ends.

source .ci/packages.sh
source packaging/version.sh
systems=$PWD/build/packages
archives=$systems/archives
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# What a script that tries packages begins with: where it cannot run it is skipped.
begin_or_skip() {  # PROGRAM WHAT
  if ! can_make_systems || ! command -v "$1" >/dev/null; then
    echo "skipped: $2 as root, with debootstrap and $1"
    exit 77
  fi
}

can_make_systems() {
  [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null && [ -n "$release" ] && unshare --mount true 2>/dev/null
}

# Debian's mirror, as apt of this machine has it.
debian_mirror() {
  apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Identifier: Packages' |
    awk -v release="$release" '$1 == "Debian" && $2 == release { print $3; exit }'
}

# $systems/base-RELEASE.tar: packed once, then kept.
make_base() {
  local base=$systems/base-$release.tar folder mirror file
  [ -e "$base" ] && return 0
  mirror=$(debian_mirror)
  if [ -z "$mirror" ]; then
    echo "apt of this machine has no source of Debian $release; run apt-get update" >&2
    return 1
  fi
  mkdir -p "$systems"
  folder=$(mktemp -d "$systems/base.XXXXXX")
  debootstrap --variant=minbase "$release" "$folder" "$mirror" > "$systems/debootstrap.log" 2>&1 ||
    { tail -20 "$systems/debootstrap.log" >&2; rm -rf "$folder"; return 1; }
  # Debian's own sources, and how this machine reaches them.
  rm -f "$folder"/etc/apt/sources.list
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    if [ -e "$file" ] && { [ "$file" = /etc/apt/sources.list ] || grep -q debian-archive-keyring "$file"; }; then
      cp "$file" "$folder${file}"
    fi
  done
  for file in /etc/apt/apt.conf.d/*; do
    if grep -q '^ *Acquire::' "$file"; then cp "$file" "$folder${file}"; fi
  done
  echo force-unsafe-io > "$folder/etc/dpkg/dpkg.cfg.d/unsafe-io"
  echo 'APT::Keep-Downloaded-Packages "true";' > "$folder/etc/apt/apt.conf.d/keep-downloaded"
  rm -rf "$folder"/var/cache/apt/archives/*.deb
  tar -c -C "$folder" . > "$base.part"
  mv "$base.part" "$base"
  rm -rf "$folder"
}

# $systems/python-RELEASE.tar: a Debian of another release with its Python. Packages are unpacked and not configured, which takes
# a third of the time and is enough to use a wheel. Ends with 1 where Debian's mirror does not have the release.
make_python_base() {  # RELEASE
  local base=$systems/python-$1.tar folder package
  [ -e "$base" ] && return 0
  mkdir -p "$systems"
  folder=$(mktemp -d "$systems/base.XXXXXX")
  if debootstrap --foreign --variant=minbase --include=python3-venv "$1" "$folder" "$(debian_mirror)" \
    > "$systems/debootstrap-$1.log" 2>&1; then
    for package in "$folder"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
    # pip reads it, even where it asks no server; its package writes it when it is configured.
    cat "$folder"/usr/share/ca-certificates/mozilla/*.crt > "$folder/etc/ssl/certs/ca-certificates.crt"
    rm -rf "$folder"/var/cache/apt/archives/*.deb "$folder"/debootstrap
    tar -c -C "$folder" . > "$base.part"
    mv "$base.part" "$base"
  fi
  rm -rf "$folder"
  [ -e "$base" ]
}

# Prints the folder of a new system; who asks for it removes it.
new_system() {  # [BASE]
  local folder
  folder=$(mktemp -d "$systems/system.XXXXXX")
  tar -x -C "$folder" -f "$systems/${1:-base-$release}.tar"
  chmod 755 "$folder"  # Last: the archive has the mode of the folder that it was made of, which only root may enter.
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
  echo "$folder"
}

# Runs a shell script from standard input within a system. Packages that it downloads are kept for the next one, unless
# fresh_downloads=yes.
inside() {  # SYSTEM [ARGUMENT...]
  local folder=$1
  shift
  local downloads=$archives
  if [ "${fresh_downloads:-no}" = yes ]; then downloads=$folder/var/cache/apt/archives; fi
  mkdir -p "$downloads/partial"
  unshare --mount --pid --fork sh -c '
    set -e
    mount --rbind /dev "$0/dev"  # With /dev/pts, without which there are no terminals.
    mount -t proc proc "$0/proc"
    mount --bind "$1" "$0/var/cache/apt/archives"
    folder=$0; shift
    exec chroot "$folder" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} bash -euo pipefail -s "$@"
  ' "$folder" "$downloads" "$@"
}
