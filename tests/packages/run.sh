#!/usr/bin/env bash
# Builds the Debian packages and the wheel, and installs and tries each in a bare Debian, the wheel also in older and newer ones.
# Also packs the source archive that `python3 -m build` makes, and configures it.
#   tests/packages/run.sh [--built DEBS WHEELS]     --built: tries what is in these folders, and builds nothing
# Needs root, debootstrap and lintian, and apt's sources of this machine; 77 (skipped) where it has not got these. The packages
# are compiled quickly, as the other tests are, unless GPUMEM_PACKAGE_FLAGS says otherwise.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/packages/bare_system.sh
begin_or_skip lintian "the packages are tried"
debs=$systems/debs wheels=$systems/wheels
if [ "${1:-}" = --built ]; then
  debs=$(realpath "$2") wheels=$(realpath "$3")
else
  export GPUMEM_PACKAGE_FLAGS=${GPUMEM_PACKAGE_FLAGS:--Og -DNDEBUG}
  # A compiler cache knows files again that the preset "all" compiled, if the compiler has the same name.
  export CXX=${CXX:-g++}
  packaging/debian.sh "$debs"
  packaging/wheel.sh "$wheels"
fi

made=()
trap '[ ${#made[@]} -eq 0 ] || rm -rf "${made[@]}"' EXIT

# A system with these files and what the checks need in /given.
system_with() {  # FILE...
  prepare "$(new_system)" "$@"
}

prepare() {  # SYSTEM FILE...
  system=$1
  shift
  made+=("$system")
  mkdir "$system/given"
  cp -r "$@" examples/c examples/kubernetes/review.json examples/trainers models/summaries/resnet50.torchsummary.txt \
    tests/packages/try_{debs,wheel,python}.* "$system/given/"
}

say "A bare Debian $release"
make_base

say "lintian"
lintian --fail-on error --allow-root --tag-display-limit 0 "$debs"/*_"$version"_*.deb

say "The source archive"
archive=$(mktemp -d "$systems/source.XXXXXX")
made+=("$archive")
export_tree "$archive/tree"
(cd "$archive/tree" && /usr/bin/python3 setup.py -q sdist -d "$archive") > "$systems/sdist.log" 2>&1
tar -x -C "$archive" -f "$archive/gpumem-$version.tar.gz"
for folder in .ci docs examples include models packaging src; do
  diff -r "$archive/tree/$folder" "$archive/gpumem-$version/$folder"
done
(cd "$archive/gpumem-$version" && cmake -S . -B build/all -DCMAKE_BUILD_TYPE=Release) > "$systems/sdist.log" 2>&1 ||
  { tail -20 "$systems/sdist.log" >&2; exit 1; }

say "The Debian packages"
system_with "$debs"/*_"$version"_*.deb
inside "$system" "$version" < tests/packages/try_debs.sh
cp "$system/given/estimate.txt" "$systems/estimate.txt"

say "The wheel"
python3 packaging/elf_needs.py "$wheels"/gpumem-"$version"-*.whl
system_with "$wheels"/gpumem-"$version"-*.whl "$systems/estimate.txt"
inside "$system" "$version" < tests/packages/try_wheel.sh

# The oldest and the newest that it is for: Python 3.9 with glibc 2.31, Python 3.13 with glibc 2.41.
# Where Debian 11's glibc could not be had (packaging/old_glibc.sh), the wheel needs a newer one, as its tag says.
needed=$(ls "$wheels"/gpumem-"$version"-*.whl | sed -n 's/.*manylinux_2_\([0-9]*\)_.*/\1/p')
for other in bullseye trixie; do
  [ "$other" != "$release" ] || continue
  say "The wheel in a bare Debian $other"
  if [ "$other" = bullseye ] && [ "$needed" -gt 31 ]; then
    echo "left out: the wheel was linked with glibc 2.$needed, and $other has 2.31"
    continue
  fi
  if ! make_python_base "$other"; then
    echo "left out: this machine cannot make one"
    continue
  fi
  prepare "$(new_system "python-$other")" "$wheels"/gpumem-"$version"-*.whl "$systems/estimate.txt"
  inside "$system" "$version" < tests/packages/try_wheel.sh
done

say "No mount is left"
if grep -F "$systems" /proc/mounts; then exit 1; fi
