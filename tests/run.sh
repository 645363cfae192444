#!/usr/bin/env bash
# Builds gpumem and runs its tests. Installs what is missing first.
#   tests/run.sh        the library, the command line, the examples: light and fast
#   tests/run.sh --all  also sanitizers, fuzzers, benchmarks, format, lint, and the parts with heavy packages
# With CI=true, --all fails where a part cannot be installed or a test finds a package missing.
set -euo pipefail
cd "$(dirname "$0")/.."
source .ci/packages.sh

all=no
case "${1:-}" in
  "") ;;
  --all) all=yes ;;
  *) echo "usage: tests/run.sh [--all]" >&2; exit 2 ;;
esac
jobs=$(nproc)
webhook=OFF   # gpumem-webhook: where its packages can be had
packages=OFF  # the Debian packages and the wheel: likewise
light=OFF     # whether the programs of --all are left out
must_run=OFF  # whether a test may not be skipped for lack of a package

configure() {  # PRESET [ARGUMENT...]
  local with_webhook=$webhook generator=()
  # ThreadSanitizer would see half of what Debian's cpp-httplib does.
  if [ "$1" = tsan ]; then with_webhook=OFF; fi
  # Make begins with no program before its libraries are done, and leaves all cores but one idle meanwhile. What the preset "all"
  # compiles the newcomer finds in the cache of compiled files, if both use make.
  case "$1" in
    asan | tsan) if [ ! -e "build/$1/CMakeCache.txt" ]; then generator=(-G Ninja); fi ;;
  esac
  cmake --preset "$1" "${generator[@]}" -DGPUMEM_BUILD_WEBHOOK="$with_webhook" -DGPUMEM_TESTS_MUST_RUN="$must_run" -DGPUMEM_UNITY_BUILD=ON \
    -DGPUMEM_TESTS_IN_SHARDS=ON -DGPUMEM_TESTS_LIGHT="$light" "${@:2}"
}

# Installs what a part of the program needs. Where it cannot be had, that part is neither built nor tested, and all else
# is; in continuous integration, which would be green without it, that is a failure.
install_or_leave_out() {  # PART PACKAGE...
  local part=$1
  shift
  if install_missing "$@"; then return 0; fi
  echo "tests/run.sh: $* cannot be installed: $part is left out" >&2
  if [ "${CI:-}" = true ]; then exit 1; fi
  return 1
}

# Why GoogleTest may skip a test anywhere: because of the machine or the build, not because a package is missing.
may_skip='no NVIDIA driver here|the driver lists no GPU|takes two users|/proc cannot be mounted here|only where malloc can be counted'
may_skip+="|built with yaml-cpp|trees of its class are not read"

# A shard passes where GoogleTest skips its tests, and ctest does not say so.
report_skips() {  # LOG OF CTEST
  local skips
  skips=$(awk '/: Skipped$/ { place = $1; sub(".*/tests/", "tests/", place); getline; print place, $0 }' "$1" | sort -u)
  if [ -z "$skips" ]; then return 0; fi
  printf 'Skipped:\n%s\n' "$skips"
  if [ "$must_run" = ON ] && grep -vE ": ($may_skip)" <<< "$skips" >&2; then
    echo "tests/run.sh: these must not be skipped here; reasons that may be are in may_skip" >&2
    exit 1
  fi
}

# Runs commands of which each keeps one core busy, as many at a time as there are cores. What each prints stays together.
side_by_side() {  # COMMAND...
  printf '%s\0' "$@" | xargs -0 -P "$jobs" -I{} bash -c 'output=$($1 2>&1) && code=0 || code=$?
    printf "%s\n%s\n" "$1" "$output"; exit "$code"' run {}
}

# Begins a command beside what follows. What keeps no core of its own (NICENESS 19) takes what that leaves idle: the ends of
# builds and of tests, and waiting for servers of packages. What it prints comes, in one piece, when it is waited for.
declare -A beside=()
begin_beside() {  # NAME NICENESS COMMAND...
  mkdir -p build/beside
  set -m  # A process group of its own: all of it can be ended.
  { renice -n "$2" -p "$BASHPID" > /dev/null; "${@:3}"; } > "build/beside/$1.log" 2>&1 < /dev/null &
  set +m
  beside[$1]=$!
}
finish_beside() {  # NAME
  local code=0
  wait "${beside[$1]}" || code=$?
  unset "beside[$1]"
  cat "build/beside/$1.log"
  return "$code"
}
end_all_beside() {
  local process
  for process in "${beside[@]}"; do kill -- "-$process" 2> /dev/null || true; done
}
trap end_all_beside EXIT

build_and_test() {  # PRESET [ARGUMENT OF CTEST...]
  say "Building and testing: $1"
  configure "$1"
  cmake --build --preset "$1" --parallel "$jobs"
  ctest --preset "$1" --parallel "$jobs" "${@:2}"
  report_skips "build/$1/Testing/Temporary/LastTest.log"
}

# The tests of the pages and of the scripts are in Python, those of the shell in bash.
install_missing "${core_packages[@]}" libgtest-dev pkg-config python3

if [ "$all" = yes ]; then
  install_missing clang clang-format clang-tidy lld libclang-rt-14-dev libbenchmark-dev libtorch-dev ninja-build \
    python3-torch python3-torchvision
  # With it gpumem-webhook; its manifests are checked with PyYAML.
  if install_or_leave_out "gpumem-webhook" libcpp-httplib-dev libssl-dev pkg-config; then webhook=ON; fi
  install_or_leave_out "the check of the webhook's manifests" python3-yaml || true
  # mypy checks the package's type hints.
  install_or_leave_out "the check of the type hints" mypy || true
  install_or_leave_out "trainers' files in YAML" libyaml-cpp-dev || true
  install_or_leave_out "opening the timeline's pages" chromium || true
  install_or_leave_out "pressing Tab in shells" zsh fish || true
  install_or_leave_out "reading the manual pages" man-db groff || true
  install_or_leave_out "the reference of the API" doxygen || true
  install_or_leave_out "the web page" emscripten nodejs || true
  # A cluster without a GPU; no service is needed or set up.
  install_or_leave_out "the plugin for Slurm" libslurm-dev lua5.1 slurm-client slurm-wlm-basic-plugins slurmctld slurmd ||
    true
  # Installed in bare systems, which only root can make.
  if [ "$(id -u)" -eq 0 ] && install_or_leave_out "the Debian packages and the wheel" build-essential dpkg-dev fakeroot \
    debhelper dh-python help2man lintian debootstrap python3-pip python3-setuptools python3-wheel python3-venv ccache; then packages=ON; fi
  # What is installed is tested: no test may find it missing.
  if [ "${CI:-}" = true ]; then must_run=ON; fi

  if [ "$packages" = ON ]; then begin_beside systems 19 ./tests/packages/make_systems.sh; fi
  begin_beside scripts 19 side_by_side "/usr/bin/python3 examples/pytorch/print_summaries.py --check" \
    "python3 examples/huggingface/print_trees.py --check" \
    "/usr/bin/python3 examples/pytorch/export_graph.py --check" "python3 docs/images/house.py --check" \
    "python3 tests/golden/models/make_models.py --check" "/usr/bin/python3 bench/references/fake_tensor.py --check" \
    "/usr/bin/python3 bench/references/network.py --check"
  begin_beside lint 19 ./tests/lint.sh

  say "clang-format"
  git ls-files '*.hpp' '*.cpp' '*.h' '*.c' | xargs -P "$jobs" -n 100 clang-format --dry-run -Werror

  build_and_test asan
  build_and_test tsan

  say "Fuzzing each target from a fixed seed"
  GPUMEM_FUZZ_PRESET=asan GPUMEM_FUZZ_RUNS=2000 ./tests/fuzz/run.sh 10

  say "clang-tidy (beside what is above)"
  finish_beside lint

  say "What scripts have made is what they make: shipped summaries and graphs, the picture of the house, the small models of the
         tests, the reference peaks of FakeTensorMode and PyTorch's reference outputs of networks (beside what is above)"
  finish_beside scripts
fi

# Last, so that its verdict closes the output. One build of everything costs less than one for each part.
if [ "$all" = yes ]; then
  # The packages are compiled of the same files, with the same flags.
  if [ "$packages" = ON ]; then
    source .ci/ccache.sh "$PWD/build/ccache"
  fi
  configure all -DGPUMEM_TEST_PACKAGES="$packages"
  cmake --build --preset all --parallel "$jobs"
  say "Benchmarks, one short round, not of the largest sizes: that they run, not what they measure. The tables of
         docs/accuracy.md are what the models and the runs at hand say"
  one_round=("env PROGRAM=build/all/bench/accuracy/gpumem_accuracy ./bench/accuracy/run.sh --readme docs/accuracy.md --check")
  if [ -e build/all/examples/slurm/spank_gpumem.so ] && [ -x /usr/sbin/slurmctld ]; then
    one_round+=("./bench/slurm.sh build/all/examples/slurm/spank_gpumem.so 5 50 50")
  fi
  for name in gpumem_bench gpumem_process_bench gpumem_capi_bench; do
    one_round+=("./build/all/bench/$name --benchmark_min_time=0.01 --benchmark_filter=-0000")
  done
  side_by_side "${one_round[@]}"
  if [ "$packages" = ON ]; then
    finish_beside systems || true  # Those who need a system make it, or say why they cannot.
    begin_beside newcomer 0 ./tests/packages/newcomer.sh
  fi
  build_and_test all
  if [ "$packages" = ON ]; then
    say "README's test command in a bare system, where nothing is installed that it does not install (beside what is above)"
    # 77: this machine cannot make bare systems.
    finish_beside newcomer || { code=$?; [ "$code" -eq 77 ] && [ "$must_run" = OFF ] || exit "$code"; }
  fi
else
  # Those that take minutes are for --all: of parts whose packages may happen to be installed, programs that compile the
  # library or its headers once more, the launcher under siege, and what GPUMEM_TESTS_LIGHT leaves out.
  light=ON
  build_and_test tests --label-exclude 'browser|library_again|programs|reference|slurm|soak|trainer|web'
fi
