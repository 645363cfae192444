#!/usr/bin/env bash
# Builds the Debian packages of this tree, for the Debian release that it runs on.
#   packaging/debian.sh [OUT]     OUT: build/debian unless said
# Installs missing Debian packages first. Environment:
#   GPUMEM_PACKAGE_FLAGS="-Og -DNDEBUG"   compiles with these flags alone: for tests of the packages, not for packages to use
#   CMAKE_CXX_COMPILER_LAUNCHER=ccache    as CMake knows it
set -euo pipefail
cd "$(dirname "$0")/.."
source .ci/packages.sh
source packaging/version.sh
out=$(realpath -m "${1:-build/debian}")

build_depends=$(sed -n 's/^Build-Depends: *//p' packaging/debian/control | sed 's/([^)]*)//g; s/,/ /g; s/debhelper-compat/debhelper/')
# shellcheck disable=SC2086
install_missing build-essential dpkg-dev fakeroot $build_depends

mkdir -p build "$out"
work=$PWD/build/debian.work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
tree=$work/gpumem
export_tree "$tree"
mkdir "$tree/debian"
cp -r packaging/debian/. "$tree/debian/"
cat > "$tree/debian/changelog" <<END
gpumem ($version) unstable; urgency=medium

  * /usr/share/doc/gpumem/CHANGELOG.md says what changed.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

if [ -n "${GPUMEM_PACKAGE_FLAGS:-}" ]; then
  export GPUMEM_PACKAGE_FLAGS DEB_LDFLAGS_SET= DEB_CFLAGS_SET='' DEB_CXXFLAGS_SET='' DEB_CPPFLAGS_SET=''
fi
export DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)"
say "Building the packages of gpumem $version"
(cd "$tree" && dpkg-buildpackage -b -us -uc > "$out/build.log" 2>&1) || { tail -40 "$out/build.log" >&2; exit 1; }
rm -f "$out"/*gpumem*.deb
mv "$work"/*.deb "$out/"
say "Built in $out"
ls -l "$out"/*gpumem*.deb | awk '{ printf "%8.1f KiB  %s\n", $5 / 1024, $NF }'
