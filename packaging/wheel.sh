#!/usr/bin/env bash
# Builds a self-contained wheel of the Python package, with the command line in it: it needs glibc, libstdc++ and libgcc_s
# alone. Its tag says from which glibc on.
#   packaging/wheel.sh [OUT]     OUT: build/wheel unless said
# Installs missing Debian packages first. Environment:
#   PYTHON=python3.12                     the Python that the wheel is for; /usr/bin/python3 unless said
#   GPUMEM_PACKAGE_FLAGS="-O1 -DNDEBUG"   compiles with these flags instead of Release's: for tests, not for wheels to use
#   CMAKE_CXX_COMPILER_LAUNCHER=ccache    as CMake knows it
set -euo pipefail
cd "$(dirname "$0")/.."
source .ci/packages.sh
source packaging/version.sh
out=$(realpath -m "${1:-build/wheel}")
python=${PYTHON:-/usr/bin/python3}

install_missing "${core_packages[@]}" binutils libyaml-cpp-dev pybind11-dev python3-dev python3-pip python3-setuptools python3-wheel

say "Building the wheel of gpumem $version for $("$python" --version)"
mkdir -p build "$out"
if [ -n "${GPUMEM_PACKAGE_FLAGS:-}" ]; then
  export CMAKE_ARGS="${CMAKE_ARGS:-} '-DCMAKE_CXX_FLAGS_RELEASE=$GPUMEM_PACKAGE_FLAGS'"
fi
rm -rf build/bdist.* build/lib.* build/temp.* "$out"/gpumem-*.whl
GPUMEM_SELF_CONTAINED_WHEEL=1 "$python" -m pip wheel . --no-build-isolation --no-deps --no-index -w "$out" \
  > "$out/build.log" 2>&1 || { tail -40 "$out/build.log" >&2; exit 1; }
"$python" packaging/elf_needs.py "$out"/gpumem-*.whl
say "Built in $out"
ls -l "$out"/gpumem-*.whl | awk '{ printf "%8.1f KiB  %s\n", $5 / 1024, $NF }'
