# Sourced by the scripts of this folder, from the root of the tree.
# Output: the version, which CMakeLists.txt says, and its date in seconds, which CHANGELOG.md says.
version=$(sed -n 's/^project(gpumem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
released=$(sed -n "s/^## $version (\([0-9-]*\))$/\1/p" CHANGELOG.md)
if [ -z "$version" ] || [ -z "$released" ]; then
  echo "packaging: CHANGELOG.md has no heading \"## $version (YYYY-MM-DD)\" for the version of CMakeLists.txt; add it" >&2
  exit 1
fi
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(date -u -d "$released" +%s)

# The tree as it is, without what git ignores, in FOLDER; without git, all of it but build/.
export_tree() {  # FOLDER
  mkdir -p "$1"
  if git rev-parse --is-inside-work-tree > /dev/null 2>&1; then
    # A file that is deleted and not yet committed is listed, too.
    git ls-files -z --cached --others --exclude-standard |
      xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\0" "$file"; done' sh
  else
    find . \( -path ./build -o -path ./.git \) -prune -o -type f -print0
  fi | tar -c --null --files-from=- | tar -x -C "$1"
}
