#!/usr/bin/env bash
# Fetches what a linker needs of Debian 11's glibc (2.31), so that a program that is compiled here also runs on systems as old as
# that. A program names the version of each function of glibc that it was linked with, and a newer glibc has the old ones, too.
#   packaging/old_glibc.sh FOLDER [aarch64]   gcc -B FOLDER links with it; ends with 1 if Debian's mirror does not have it
# Needs apt and Debian's keys, but neither root nor Debian 11. What this compiler's libstdc++.a calls of newer glibcs is in
# newer_glibc.c. For aarch64 the folder also gets the static zlib and yaml-cpp of this machine's Debian.
set -euo pipefail
folder=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
release=bullseye
machine=${2:-x86_64}
triplet=$machine-linux-gnu
case $machine in
  x86_64) architecture=amd64 loader=ld-linux-x86-64.so.2 oldest=GLIBC_2.2.5 ;;
  aarch64) architecture=arm64 loader=ld-linux-aarch64.so.1 oldest=GLIBC_2.17 ;;
  *) echo "old_glibc.sh: only for x86_64 and aarch64" >&2; exit 1 ;;
esac
command -v "$triplet-gcc" > /dev/null || { echo "old_glibc.sh: there is no $triplet-gcc" >&2; exit 1; }
if [ -e "$folder/libc.so" ]; then exit 0; fi

# The label: security updates are of the same origin, and have no release's first packages. awk reads all, for pipefail.
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Identifier: Packages' |
  awk '$1 == "Debian" && !seen { print $2; seen = 1 }')
if [ -z "$mirror" ]; then echo "old_glibc.sh: apt of this machine has no source of Debian" >&2; exit 1; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,archives/partial,unpacked}
echo "deb $mirror $release main" > "$work/sources.list"
packages=("libc6/$release" "libc6-dev/$release")
if [ "$machine" != x86_64 ]; then
  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  echo "deb $mirror $own main" >> "$work/sources.list"
  packages+=("zlib1g-dev/$own" "libyaml-cpp-dev/$own")
fi
: > "$work/status"  # nothing of this architecture is installed
settings=(-q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
  -o "Dir::State::status=$work/status" -o "Dir::Cache=$work" -o APT::Sandbox::User=root
  -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture")
apt-get "${settings[@]}" update > "$work/log" 2>&1 && cd "$work" &&
  apt-get "${settings[@]}" download "${packages[@]}" >> "$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done

mkdir -p "$folder"
cd "$work/unpacked"
cp usr/lib/"$triplet"/{crt1.o,Scrt1.o,crti.o,crtn.o,libc_nonshared.a} "$folder/"
for library in libc.so.6 libm.so.6 libmvec.so.1 libpthread.so.0 libdl.so.2 librt.so.1 $loader; do
  if [ -e lib/"$triplet/$library" ]; then cp -L lib/"$triplet/$library" "$folder/"; fi
done
for name in z yaml-cpp; do if [ -e "usr/lib/$triplet/lib$name.a" ]; then cp "usr/lib/$triplet/lib$name.a" "$folder/"; fi; done
"$triplet-gcc" -O2 -fPIC -c "$here/newer_glibc.c" -o newer.o
"$triplet-gcc" -O2 -fPIC -fno-builtin -DOF_LIBM "-DOLDEST=\"$oldest\"" -c "$here/newer_glibc.c" -o newer_libm.o
"$triplet-ar" -cr "$folder/libnewer.a" newer.o
"$triplet-ar" -cr "$folder/libnewer_libm.a" newer_libm.o
for name in pthread dl rt; do ln -sf "$(basename "$folder"/lib$name.so.*)" "$folder/lib$name.so"; done
echo "GROUP ( $folder/libnewer_libm.a $folder/libm.so.6 )" > "$folder/libm.so"
# One for all: newer glibcs have threads in libc, and compilers count on that.
cat > "$folder/libc.so" << END
GROUP ( $folder/libc.so.6 $folder/libc_nonshared.a $folder/libnewer.a
  AS_NEEDED ( $folder/libpthread.so.0 $folder/libdl.so.2 $folder/$loader ) )
END
