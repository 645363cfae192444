# Sourced by the scripts that build: installs the Debian packages that are missing, and only those.

# A heading, with the minutes and seconds since the script began.
say() { printf '\n== %02d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

install_missing() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "This is not Debian: make sure that the counterparts of these packages are installed: $*" >&2
    return 0
  fi
  for package in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "Installing ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# What the library and the command line are built with.
core_packages=(g++ make cmake nlohmann-json3-dev libeigen3-dev libcli11-dev zlib1g-dev)
