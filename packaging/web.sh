#!/usr/bin/env bash
# Builds the web page: one folder of static files, for any host or for a browser alone.
#   packaging/web.sh [OUT]   OUT: the folder to write (default: build/web/page)
# Needs Debian's emscripten, nodejs, cmake, make, nlohmann-json3-dev and libeigen3-dev.
set -euo pipefail
out=$(realpath -m "${1:-$(dirname "$0")/../build/web/page}")
cd "$(dirname "$0")/.."
# Emscripten's scripts find acorn here; a node that is not Debian's does not look for it by itself.
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}
emcmake cmake -S src/web -B build/web -DCMAKE_BUILD_TYPE=Release
cmake --build build/web --parallel "$(nproc)"
node packaging/web.mjs build/web "$out"
