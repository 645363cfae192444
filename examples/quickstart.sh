#!/usr/bin/env bash
# From a fresh clone on Debian 12 to a first estimate: installs what is missing, builds the command line (and nothing
# else), quickly rather than for speed, and estimates a ResNet-50 at batch 32 on an A100-40GB.
set -euo pipefail
cd "$(dirname "$0")/.."
source .ci/packages.sh

install_missing "${core_packages[@]}"

say "Building gpumem in build/quickstart"
cmake --preset quickstart
cmake --build --preset quickstart --parallel "$(nproc)"

say "gpumem estimate models/summaries/resnet50.torchsummary.txt --batch 32 --gpu a100-40gb"
./build/quickstart/src/cli/gpumem estimate models/summaries/resnet50.torchsummary.txt --batch 32 --gpu a100-40gb
