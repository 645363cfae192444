#!/usr/bin/env bash
# Fetches what a linker needs of Debian 11's glibc (2.31), so that a program that is compiled here also runs on systems as old as
# that. A program names the version of each function of glibc that it was linked with, and a newer glibc has the old ones, too.
#   packaging/old_glibc.sh FOLDER     gcc -B FOLDER links with it; ends with 1 if Debian's mirror does not have it, or not on x86-64
# Needs apt and Debian's keys, but neither root nor Debian 11. What this compiler's libstdc++.a calls of newer glibcs is in
# newer_glibc.c.
set -euo pipefail
folder=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
release=bullseye
triplet=$(gcc -dumpmachine)
[ "$triplet" = x86_64-linux-gnu ] || { echo "old_glibc.sh: only for x86-64" >&2; exit 1; }
if [ -e "$folder/libc.so" ]; then exit 0; fi

# The label: security updates are of the same origin, and have no release's first packages. awk reads all, for pipefail.
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Identifier: Packages' |
  awk '$1 == "Debian" && !seen { print $2; seen = 1 }')
if [ -z "$mirror" ]; then echo "old_glibc.sh: apt of this machine has no source of Debian" >&2; exit 1; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,archives/partial,unpacked}
echo "deb $mirror $release main" > "$work/sources.list"
settings=(-q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
  -o "Dir::Cache=$work" -o APT::Sandbox::User=root)
apt-get "${settings[@]}" update > "$work/log" 2>&1 && cd "$work" &&
  apt-get "${settings[@]}" download "libc6/$release" "libc6-dev/$release" >> "$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done

mkdir -p "$folder"
cd "$work/unpacked"
cp usr/lib/"$triplet"/{crt1.o,Scrt1.o,crti.o,crtn.o,libc_nonshared.a} "$folder/"
for library in libc.so.6 libm.so.6 libmvec.so.1 libpthread.so.0 libdl.so.2 librt.so.1 ld-linux-x86-64.so.2; do
  if [ -e lib/"$triplet/$library" ]; then cp -L lib/"$triplet/$library" "$folder/"; fi
done
gcc -O2 -fPIC -c "$here/newer_glibc.c" -o newer.o
gcc -O2 -fPIC -fno-builtin -DOF_LIBM -c "$here/newer_glibc.c" -o newer_libm.o
ar -cr "$folder/libnewer.a" newer.o
ar -cr "$folder/libnewer_libm.a" newer_libm.o
for name in pthread dl rt; do ln -sf "$(basename "$folder"/lib$name.so.*)" "$folder/lib$name.so"; done
echo "GROUP ( $folder/libnewer_libm.a $folder/libm.so.6 )" > "$folder/libm.so"
# One for all: newer glibcs have threads in libc, and compilers count on that.
cat > "$folder/libc.so" << END
GROUP ( $folder/libc.so.6 $folder/libc_nonshared.a $folder/libnewer.a
  AS_NEEDED ( $folder/libpthread.so.0 $folder/libdl.so.2 $folder/ld-linux-x86-64.so.2 ) )
END
