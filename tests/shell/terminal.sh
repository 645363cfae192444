#!/usr/bin/env bash
# What a terminal gets, and a pipe does not. Argument: the program. Exit code 77 where script is missing.
set -euo pipefail
gpumem=$1
cd "$(dirname "$0")/../.."
command -v script >/dev/null || { echo "skipped: there is no script"; exit 77; }
failed=0
fail() { echo "$*"; failed=1; }

in_terminal() {  # COLUMNS VARIABLES WORDS
  script -qec "stty cols $1; env -u COLUMNS $2 '$gpumem' $3" /dev/null </dev/null | tr -d '\r'
}
job="estimate models/summaries/resnet50.torchsummary.txt --batch 32"
escape=$(printf '\033')
utf8="LC_ALL=C.UTF-8 TERM=xterm"

piped=$("$gpumem" $job)
case $piped in *"$escape"*|*░*|*"...."*) fail "a pipe gets drawings" ;; esac

# Without colours and bars a terminal shows what a pipe gets.
plain=$(in_terminal 120 "$utf8 NO_COLOR=1" "$job")
case $plain in *"$escape"*) fail "NO_COLOR is not heeded" ;; esac
case $plain in *"of 39.6 GiB"*█▓▒░*) ;; *) fail "the range is not drawn: $plain" ;; esac
figures() { grep -o '[0-9.]* GiB' <<<"$1" | sort; }
diff <(figures "$piped") <(figures "${plain/of 39.6 GiB/}") || fail "a terminal shows other figures"

case $(in_terminal 120 "$utf8" "$job") in *"$escape[32myes"*) ;; *) fail "no colours in a terminal" ;; esac
case $(in_terminal 120 "LC_ALL=C TERM=dumb" "$job") in
  *"$escape"*) fail "TERM=dumb is not heeded" ;;
  *"##"*"....."*) ;;
  *) fail "no bars in ASCII" ;;
esac
case $(in_terminal 120 "LC_ALL=C TERM=xterm NO_COLOR=1" "$job") in *█*) fail "UTF-8 where the locale has none" ;; esac

# The page shows what a terminal of 80 columns gets.
page=$(sed -n '/^## In a terminal/,/^## /p' docs/command-line.md | awk '/^```/ { if (inside) exit; inside = 1; next } inside')
[ "$page" = "$(in_terminal 80 "$utf8 NO_COLOR=1" "$job" | sed -n '/^estimator/,/free$/p')" ] || fail "docs/command-line.md"

# Tables follow the width.
for columns in 40 80 200; do
  table=$(in_terminal "$columns" "LC_ALL=C TERM=xterm NO_COLOR=1" "$job" | sed -n '/^estimator/,/^replay is/p')
  widest=$(awk '{ if (length($0) > widest) widest = length($0) } END { print widest }' <<<"$table")
  [ "$widest" -le "$columns" ] || fail "a table of $widest columns in a terminal of $columns"
done
narrow=$(in_terminal 40 "LC_ALL=C TERM=xterm NO_COLOR=1" "$job")
case $narrow in *"  expected   3.96 GiB"*"of 39.6 GiB"*) ;; *) fail "40 columns: $narrow" ;; esac

# A server in a terminal is a table, in a pipe what place reads.
case $(in_terminal 140 "$utf8 NO_COLOR=1" "place models/summaries/vgg16.torchsummary.txt --batch 64 --server tests/golden/cli/place/server.json") in
  *"  memory in use "*"SM activity  jobs"*█*░*) ;;
  *) fail "no bars of the server's GPUs" ;;
esac

# Progress is shown on standard error alone, and taken away. A quick machine may need more work until it is shown.
shown=""
for batch in 512 4096 32768; do
  plan="plan tests/golden/cli/configs/llama3_70b.json --gpu h100-80gb --seq 8192 --global-batch $batch --show 1 --settings 0"
  shown+=$(script -qec "TERM=xterm '$gpumem' $plan >/dev/null" /dev/null </dev/null)
  [ -z "$shown" ] || break
done
case $shown in
  *"looking at "*" of "*" layouts ("*"$escape[K") ;;
  *) fail "progress: $shown" ;;
esac
exit "$failed"
