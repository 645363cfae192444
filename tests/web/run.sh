#!/usr/bin/env bash
# Builds the web page and tests it: its engine against the command line, then the page itself in headless Chromium.
#   tests/web/run.sh GPUMEM [PICTURES]   PICTURES: keep screenshots there
# Exit code 77 (skipped) where there is no emscripten, no Node or no Chromium.
set -euo pipefail
program=$(realpath "$1")
pictures=${2:+$(realpath -m "$2")}
cd "$(dirname "$0")/../.."
for tool in emcmake node; do
  if ! command -v "$tool" > /dev/null; then
    echo "no $tool is installed: skipped" >&2
    exit 77
  fi
done
packaging/web.sh
node tests/web/agreement.mjs "$program" build/web 500
node tests/web/page.mjs "$program" build/web/page $pictures
