#!/usr/bin/env bash
# Presses Tab in real shells. Argument: the program. Exit code 77 where zsh or fish is missing, once bash has passed.
set -euo pipefail
gpumem=$1
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for shell in bash zsh fish; do
  "$gpumem" completion "$shell" --out "$folder/$shell"
  cmp "$folder/$shell" <("$gpumem" completion "$shell")
done

failed=0
expect() {  # SHELL LINE EXPECTED ACTUAL
  [ "$3" = "$4" ] && return
  printf '%s: "%s" becomes\n%s\nand should become\n%s\n' "$1" "$2" "$4" "$3"
  failed=1
}

# bash: what the function finds for the last word.
source "$folder/bash"
case $(complete -p gpumem) in *"-F _gpumem gpumem") ;; *) echo "bash: not registered"; failed=1 ;; esac
in_bash() {  # EXPECTED WORD...
  local expected=$1
  shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _gpumem || true
  expect bash "$*" "$expected" "${COMPREPLY[*]}"
}
in_bash estimate gpumem est
in_bash "--help --version" gpumem --
in_bash --gpu gpumem estimate --gp
in_bash "h100-80gb h100-96gb h100-nvl-94gb h100-pcie-80gb h20-96gb h200-141gb" gpumem estimate x.txt --gpu h
in_bash t4-16gb gpumem estimate --gpu = t4
in_bash every-other: gpumem estimate --checkpointing every-
in_bash README.md gpumem estimate --checkpointing READ
in_bash "" gpumem estimate --batch ""
in_bash README.md gpumem estimate READ
touch "$folder/my model.txt"
in_bash "$folder/my model.txt" gpumem estimate "$folder/my"
[ ${#COMPREPLY[@]} -eq 1 ] || { echo "bash: a name with a blank becomes ${#COMPREPLY[@]} names"; failed=1; }
in_bash "show" gpumem model s
in_bash "gpumemnet-mlp-cnn" gpumem model show gpumemnet-mlp-c
in_bash megatron gpumem plan x --framework m
in_bash "exclusive" gpumem run --recovery e
in_bash "--quiet" gpumem run --qui
in_bash README.md gpumem run -- cat READ
in_bash "bash" gpumem completion b
in_bash "request run replay-trace" gpumem man r

[ "$failed" -eq 0 ] || exit 1
for shell in zsh fish; do
  command -v "$shell" >/dev/null || { echo "skipped: there is no $shell"; exit 77; }
  "$shell" -n "$folder/$shell"
done

# fish
in_fish() {  # EXPECTED LINE
  expect fish "$2" "$1" "$(fish --no-config -c "source $folder/fish; complete -C '$2'" | cut -f 1 | tr '\n' ' ' | sed 's/ $//')"
}
in_fish estimate "gpumem est"
in_fish --gpu "gpumem estimate --gp"
in_fish "h20-96gb h100-80gb h100-96gb h100-nvl-94gb h100-pcie-80gb h200-141gb" "gpumem estimate x.txt --gpu h"
in_fish README.md "gpumem estimate READ"
in_fish show "gpumem model sh"
in_fish gpumemnet-mlp-cnn "gpumem model show gpumemnet-mlp-c"
in_fish "megatron" "gpumem plan x --framework meg"
in_fish README.md "gpumem run -- cat READ"
in_fish "replay-trace request run" "gpumem man r"

# zsh
lines=("gpumem est" "gpumem estimate --gp" "gpumem estimate --gpu h200" "gpumem estimate READ" "gpumem model sh"
  "gpumem model show gpumemnet-mlp-c" "gpumem plan x --framework meg" "gpumem run -- cat READ" "gpumem man plac")
expected="gpumem estimate 
gpumem estimate --gpu=
gpumem estimate --gpu h200-141gb 
gpumem estimate README.md 
gpumem model show 
gpumem model show gpumemnet-mlp-cnn 
gpumem plan x --framework megatron 
gpumem run -- cat README.md 
gpumem man place "
expect zsh "the lines" "$expected" "$(zsh -f tests/shell/complete.zsh "$folder/zsh" "${lines[@]}")"
exit "$failed"
