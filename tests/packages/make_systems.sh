#!/usr/bin/env bash
# Makes the bare systems that run.sh and newcomer.sh try gpumem in, and keeps them packed: they can be made while something else
# is compiled.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/packages/bare_system.sh
can_make_systems || exit 0
make_base
for other in bullseye trixie; do
  [ "$other" = "$release" ] || make_python_base "$other" || true
done
