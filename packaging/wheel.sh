#!/usr/bin/env bash
# Builds the wheel of the Python package, one for every Python from 3.9 on, with the command line in it. It needs glibc and
# libgcc_s alone, and its tag says from which glibc on: it is linked with Debian 11's, where Debian's mirror has that.
#   packaging/wheel.sh [OUT]     OUT: build/wheel unless said
# Installs missing Debian packages first. Environment:
#   GPUMEM_WHEEL_MACHINE=aarch64          for that machine, by Debian's cross compiler
#   PYTHON=python3.12                     the Python that builds it; /usr/bin/python3 unless said
#   GPUMEM_PACKAGE_FLAGS="-Og -DNDEBUG"   compiles with these flags instead of Release's: for tests, not for wheels to use
#   CMAKE_CXX_COMPILER_LAUNCHER=ccache    as CMake knows it
set -euo pipefail
cd "$(dirname "$0")/.."
source .ci/packages.sh
source packaging/version.sh
out=$(realpath -m "${1:-build/wheel}")
python=${PYTHON:-/usr/bin/python3}

machine=${GPUMEM_WHEEL_MACHINE:-}
install_missing "${core_packages[@]}" ${machine:+g++-$machine-linux-gnu} binutils libyaml-cpp-dev python3 python3-pip python3-setuptools python3-wheel

say "Building the wheel of gpumem $version"
mkdir -p build "$out"
old_glibc=$PWD/build/old_glibc${machine:+_$machine}
if packaging/old_glibc.sh "$old_glibc" ${machine:+"$machine"}; then
  export GPUMEM_OLD_GLIBC=$old_glibc
elif [ -n "$machine" ]; then
  exit 1  # the libraries to link with come from there
else
  echo "The wheel needs the glibc of this machine, and says so." >&2
fi
if [ -n "${GPUMEM_PACKAGE_FLAGS:-}" ]; then
  export CMAKE_ARGS="${CMAKE_ARGS:-} '-DCMAKE_CXX_FLAGS_RELEASE=$GPUMEM_PACKAGE_FLAGS'"
fi
rm -rf build/bdist.* build/lib.* build/temp.* "$out"/gpumem-*.whl
GPUMEM_SELF_CONTAINED_WHEEL=1 "$python" -m pip wheel . --no-build-isolation --no-deps --no-index -w "$out" \
  > "$out/build.log" 2>&1 || { tail -40 "$out/build.log" >&2; exit 1; }
"$python" packaging/elf_needs.py "$out"/gpumem-*.whl
say "Built in $out"
ls -l "$out"/gpumem-*.whl | awk '{ printf "%8.1f KiB  %s\n", $5 / 1024, $NF }'
