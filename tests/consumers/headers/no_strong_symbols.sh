#!/bin/sh
# Fails where an object file defines, beside the consumer's own functions, a symbol that a second file could not define too.
#   no_strong_symbols.sh NM OBJECT
strong=$("$1" -C --defined-only --extern-only "$2" | grep -E '^[0-9a-f]+ [TDBRC] ' | grep -vE ' (parameters_of|fits|replay_agrees)\(')
[ -z "$strong" ] && exit 0
printf '%s\n' "not inline, in a header:" "$strong" >&2
exit 1
