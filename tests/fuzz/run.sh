#!/usr/bin/env bash
# Fuzzes every parser: tests/fuzz/run.sh SECONDS [TARGET...], so many seconds a target (all of them by default). With
# GPUMEM_FUZZ_RUNS=N it is so many runs from a fixed seed instead: the same ones each time from a clean clone. With
# GPUMEM_FUZZ_PRESET=asan the targets are those that the preset of the sanitizers' tests builds with its tests. Needs
# clang and its libFuzzer (Debian: clang libclang-rt-14-dev). What is found is left under build/fuzz/findings/;
# minimised and moved to tests/fuzz/regressions/TARGET/, the test suite replays it for ever.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:?"usage: tests/fuzz/run.sh SECONDS [TARGET...]"}
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in tests/fuzz/*.cpp; do  # one a file, except what runs them
    name=$(basename "$file" .cpp)
    [ "$name" = libfuzzer ] || [ "$name" = replay ] || targets+=("$name")
  done
fi

command -v clang++ >/dev/null || {
  echo "tests/fuzz/run.sh: clang++ is missing; install clang and libclang-rt-14-dev" >&2
  exit 1
}
preset=${GPUMEM_FUZZ_PRESET:-fuzz}
echo "building the fuzz targets of the preset $preset"
cmake --preset "$preset" -DGPUMEM_UNITY_BUILD=ON
cmake --build --preset "$preset" -j "$(nproc)" --target gpumem_fuzz gpumem_fuzz_capi

build=build/$preset
export build seconds
fuzz() {  # TARGET
  local target=$1
  local program=$build/tests/fuzz/gpumem_fuzz
  if [ "$target" = capi ]; then program+=_capi; fi
  # Mutations worth keeping go to the build folder; the seeds stay as they are.
  mkdir -p "$build/corpus/$target" "$build/findings/$target"
  local length=(-max_total_time="$seconds")
  [ -n "${GPUMEM_FUZZ_RUNS:-}" ] && length+=(-runs="$GPUMEM_FUZZ_RUNS" -seed=1)
  # The longest stored input, 16 MiB of repeated lines, takes 25 s under the sanitizers.
  local options=("${length[@]}" -rss_limit_mb=1024 -timeout=60 -max_len=65536 -print_final_stats=1
                 -artifact_prefix="$PWD/$build/findings/$target/")
  [ -f "tests/fuzz/$target.dict" ] && options+=(-dict="tests/fuzz/$target.dict")
  local inputs=("$build/corpus/$target" "tests/fuzz/corpus/$target")
  [ -d "tests/fuzz/regressions/$target" ] && inputs+=("tests/fuzz/regressions/$target")
  local log="$build/findings/$target.log"
  if GPUMEM_FUZZ_TARGET=$target "$program" "${options[@]}" "${inputs[@]}" >"$log" 2>&1; then
    echo "fuzzed $target: $(grep -E 'stat::number_of_executed_units' "$log" || true)"
    return 0
  fi
  tail -n 40 "$log"
  local artifact
  artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "tests/fuzz/run.sh: $target failed on ${artifact:-a stored input, see $log}" >&2
  echo "  again: GPUMEM_FUZZ_TARGET=$target $program ${artifact:-tests/fuzz/regressions/$target/*}" >&2
  return 1
}
export -f fuzz
# As many at a time as there are cores. xargs ends with an error if one did.
if ! printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz "$1"' fuzz {}; then
  echo "tests/fuzz/run.sh: findings, see above" >&2
  exit 1
fi
echo "no findings in ${#targets[@]} targets, $seconds s each at most"
