#!/usr/bin/env bash
# How long a newcomer waits on a bare Debian for the first estimate of their own model, by each road of docs/install.md.
#   bench/newcomer.sh [DEBS WHEELS]     folders of packages and wheels; otherwise packaging/ builds both first
# Needs root and debootstrap. Output: a line a road, in seconds of wall time; downloads are included, and nothing is kept from an
# earlier run. The machine should have nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/.."
source tests/packages/bare_system.sh
can_make_systems || { echo "bench/newcomer.sh: needs root and debootstrap" >&2; exit 1; }

debs=${1:-build/debian} wheels=${2:-build/wheel}
if [ $# -eq 0 ]; then
  packaging/debian.sh "$debs"
  packaging/wheel.sh "$wheels"
fi
make_base
fresh_downloads=yes
made=()
trap '[ ${#made[@]} -eq 0 ] || rm -rf "${made[@]}"' EXIT

# Runs the commands of standard input in a new system with FILES in /given and the printed model in /root.
road() {  # NAME FILE...
  local name=$1 system seconds
  shift
  system=$(new_system)
  made+=("$system")
  mkdir "$system/given"
  if [ $# -gt 0 ]; then cp -r "$@" "$system/given/"; fi
  if [ "$name" = source ]; then export_tree "$system/given/gpumem"; fi
  cat > "$system/root/my_model.txt" << 'END'
Net(
  (features): Sequential(
    (0): Conv2d(3, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (1): ReLU()
    (2): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    (3): Conv2d(32, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (4): ReLU()
    (5): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
  )
  (classifier): Sequential(
    (0): Flatten(start_dim=1, end_dim=-1)
    (1): Linear(in_features=4096, out_features=256, bias=True)
    (2): ReLU()
    (3): Linear(in_features=256, out_features=10, bias=True)
  )
)
END
  seconds=$(date +%s.%N)
  inside "$system" > "$systems/newcomer-$name.log" 2>&1 || { tail -20 "$systems/newcomer-$name.log" >&2; exit 1; }
  seconds=$(awk "BEGIN { printf \"%.0f\", $(date +%s.%N) - $seconds }")
  grep -q '^replay .* yes$' "$systems/newcomer-$name.log" || { echo "$name: no estimate" >&2; exit 1; }
  printf '%-8s %5d s\n' "$name" "$seconds"
  rm -rf "$system"
}

road package "$debs"/gpumem_"$version"_*.deb << 'END'
apt-get update
apt-get install -y --no-install-recommends /given/gpumem_*.deb
gpumem estimate /root/my_model.txt --batch 64 --input 3x32x32 --gpu rtx4060-8gb
END
road wheel "$wheels"/gpumem-"$version"-*.whl << 'END'
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv
python3 -m venv /root/venv
/root/venv/bin/pip install /given/gpumem-*.whl
/root/venv/bin/gpumem estimate /root/my_model.txt --batch 64 --input 3x32x32 --gpu rtx4060-8gb
END
road source << 'END'
cd /given/gpumem
./examples/quickstart.sh
./build/quickstart/src/cli/gpumem estimate /root/my_model.txt --batch 64 --input 3x32x32 --gpu rtx4060-8gb
END
uptime
