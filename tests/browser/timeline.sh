#!/usr/bin/env bash
# Opens pages of `gpumem timeline` in headless Chromium and uses them: mouse, keys, buttons, wide and narrow. Fails if
# the page says so (check_timeline.js), or if the browser's console shows an error.
#   tests/browser/timeline.sh GPUMEM [FOLDER]   FOLDER: keep the pages and screenshots there
# Exit code 77 (skipped) where there is no Chromium.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/../.."
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
  echo "no Chromium is installed: skipped" >&2
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=${2:-$work}
mkdir -p "$pages"

# Loads a page; its arguments come first.
browse() {
  timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --disable-dev-shm-usage --user-data-dir="$work/profile" \
    --hide-scrollbars --virtual-time-budget=5000 --enable-logging=stderr "$@"
}

check() {  # NAME WIDTH HEIGHT
  local name=$1 window=$2,$3
  {
    # Before all else: what goes wrong from the first line of the page on.
    sed 's|<head>|<head><script>window.faults = []; addEventListener("error", (e) => faults.push(e.message)); addEventListener("securitypolicyviolation", (e) => faults.push("blocked: " + e.blockedURI));</script>|' "$pages/$name.html"
    echo '<script>'
    cat tests/browser/check_timeline.js
    echo '</script>'
  } > "$work/checked.html"
  browse --window-size="$window" --dump-dom "file://$work/checked.html" > "$work/dom" 2> "$work/log"
  if ! grep -q 'id="verdict">PAGE-OK' "$work/dom" || grep -E 'CONSOLE.*(error|Error|Refused)' "$work/log"; then
    echo "$name at $window: $(grep -o 'id="verdict">[^<]*' "$work/dom" || echo 'the check did not end')" >&2
    grep CONSOLE "$work/log" >&2 || true
    exit 1
  fi
  browse --window-size="$window" --screenshot="$pages/$name-$2.png" "file://$pages/$name.html" > /dev/null 2>&1
  echo "$name at $window: ok"
}

timeline() {  # NAME SUMMARY OPTIONS...
  local name=$1 summary=$2
  shift 2
  "$program" timeline "$summary" "$@" -o "$pages/$name.html"
  check "$name" 1280 900
  check "$name" 400 800
}

timeline resnet50 models/graphs/resnet50.json --batch 32 --gpu rtx4090-24gb
timeline gpt_like models/graphs/gpt_like.json --batch 15 --gpu rtx4090-24gb
timeline hostile tests/browser/hostile.json --batch 8
