#!/usr/bin/env bash
# Runs README's test command as a newcomer does: in a clone, in a bare Debian with git and nothing else, so that a package
# which this machine happens to have hides nothing. Only what is committed is tested.
#   tests/packages/newcomer.sh
# What build/ccache holds is used, so that after a build of the preset "all" little is compiled again: the clone has this
# tree's path, which unity files and the tests' definitions hold. Needs root, debootstrap and apt's sources of this machine;
# 77 (skipped) where it has not got these.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/packages/bare_system.sh
begin_or_skip git "the test command is run in a bare system"
# apt locks the folder of what it downloads, and packages/run.sh may run at the same time.
archives=$systems/archives-newcomer

say "A bare Debian $release"
mkdir -p "$systems"
make_base
system=$(new_system)
trap 'rm -rf "$system"' EXIT
if [ -e "$system$PWD" ]; then
  echo "skipped: the bare system has a $PWD of its own"
  exit 77
fi
git clone -q --no-hardlinks . "$system$PWD"
# Others may write into it meanwhile: what goes away is compiled again.
if [ -d build/ccache ]; then cp -r build/ccache "$system/ccache" 2> /dev/null || true; fi

say "README's test command in it"
inside "$system" "$PWD" <<'SCRIPT'
apt-get update -q > /tmp/apt.log
apt-get install -y -q --no-install-recommends git >> /tmp/apt.log
git config --global --add safe.directory "$1"
cd "$1"
if [ -d /ccache ]; then
  apt-get install -y -q --no-install-recommends ccache >> /tmp/apt.log
  source .ci/ccache.sh /ccache
  export CXX=g++
fi
./tests/run.sh < /dev/null  # standard input is this script
if [ -d /ccache ]; then ccache --show-stats; fi
SCRIPT
