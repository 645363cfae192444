# Completes lines in an interactive zsh, as Tab does. Arguments: the script of completion, then the lines.
# Output: each line, and what became of it.
zmodload zsh/zpty
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
script=$1
shift
zpty -b shell "TERM=dumb exec zsh -f -i"
zpty -w shell "autoload -Uz compinit && compinit -u -d $folder/dump && source $script"
# ^X writes down what stands on the line, ^U takes it away.
zpty -w shell "note() { print -r -- \"\$BUFFER\" >> $folder/lines }; zle -N note; bindkey '^X' note; bindkey '^U' kill-whole-line; bindkey '^I' complete-word; setopt no_beep no_list_ambiguous"
zpty -w shell "touch $folder/ready"
for ((wait = 0; wait < 300; ++wait)); do
  zpty -r -t shell >/dev/null
  [[ -e $folder/ready ]] && break
  sleep 0.1
done
for line in "$@"; do
  count=$(cat "$folder/lines" 2>/dev/null | wc -l)
  zpty -w -n shell "$line"$'\t'
  sleep 0.3
  zpty -w -n shell $'\x18'
  for ((wait = 0; wait < 100; ++wait)); do
    zpty -r -t shell >/dev/null
    (($(cat "$folder/lines" 2>/dev/null | wc -l) > count)) && break
    sleep 0.05
  done
  zpty -w -n shell $'\x15'
done
cat "$folder/lines"
zpty -d shell
