#!/bin/bash
# gpumem in Slurm, the part that runs jobs again that ran out of memory: an Epilog of slurmd. It is for batch jobs that
# have shards of a GPU, failed, and say on standard error that CUDA was out of memory. Such a job waits again with a
# larger request. The number of retries is limited, and the last one asks for all shards of the largest GPU, so that no
# other job is there. All other jobs are not touched.
#
#   slurm.conf on the nodes:  Epilog=/etc/slurm/gpumem_epilog.sh
#
# Input: SLURM_JOB_ID, what `scontrol show job` knows, and the last lines of the job's standard error.
# Output: the job is pending with more shards. Its AdminComment says what it had, what was seen and what it asks for now:
#   gpumem: out of memory 1 of 4 times: had 8467 MiB, 8725 MiB were needed at least; runs again with 13587 MiB
# A job that is given up has ended, and Slurm takes no comment for it any more: the line goes to its standard error.
#
# The rule is `growing` of gpumem (place/policies.hpp): more than it had by a step that doubles each time, and at least
# what PyTorch said that it needed. Messages: PyTorch's of c10/cuda/CUDACachingAllocator.cpp ("CUDA out of memory. Tried
# to allocate 2.00 GiB. ... this process has 7.50 GiB memory in use"), CUDA's own "out of memory" with its error name,
# cuBLAS' and cuDNN's of allocations that failed. Slurm 22.05; README.md tells how to set it up.

# Settings; $(dirname "$SLURM_CONF")/gpumem_epilog.conf may change them.
largest_mib=40506  # the largest Count of a shard line in gres.conf
step_mib=5120      # what the first retry asks for beyond what was had
retries=3          # at most; the last of them without other jobs on the GPU
read_bytes=65536   # of the end of standard error

# What a job's standard error says when its GPU is full.
messages='CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|'
messages+='CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED'

# Everything that goes wrong here must leave the node in service: a failing Epilog drains it.
trap 'exit 0' EXIT

field() { sed -n "s/.*[[:space:]]$1=\([^[:space:]]*\).*/\1/p" <<< " $record" | head -n 1; }
# A path may hold spaces: all of its line.
line_of() { sed -n "s/^ *$1=//p" <<< "$record" | head -n 1; }
say() { scontrol update JobId="$SLURM_JOB_ID" AdminComment="gpumem: $1" > /dev/null 2>&1; }

# Runs as the user whose job it is, for the paths are the user's.
as_user() {
  if [ "$(id -un)" = "$SLURM_JOB_USER" ]; then
    timeout 10 "$@"
  else
    timeout 10 setpriv --reuid "$SLURM_JOB_USER" --regid "${SLURM_JOB_GID:-$SLURM_JOB_UID}" --clear-groups "$@"
  fi
}

# The last bytes of a regular file; nothing of a pipe or a device, which could block.
end_of() {
  # shellcheck disable=SC2016
  as_user sh -c '[ -f "$1" ] && tail -c "$2" -- "$1"' sh "$1" "$read_bytes" 2> /dev/null < /dev/null | tr -d '\0'
}

# "7.50 GiB" as MiB, rounded up.
mib() { awk -v number="$1" -v unit="$2" 'BEGIN {
  factor = unit == "GiB" ? 1024 : unit == "MiB" ? 1 : unit == "KiB" ? 1 / 1024 : 0
  value = number * factor; whole = int(value); print (value > whole ? whole + 1 : whole) }'; }

# Behind what the job itself wrote, as its user.
append() {  # FILE LINE
  # shellcheck disable=SC2016
  as_user sh -c '[ -f "$1" ] && printf "%s\n" "$2" >> "$1"' sh "$1" "gpumem: $2" > /dev/null 2>&1 < /dev/null
}

# The MiB that PyTorch says were needed at least: what the process had, and what it tried to get; 0: it does not say.
needed() {
  local text=$1 number='([0-9.]+) ([KMG]iB)' tried=0 had=0
  if [[ $text =~ Tried\ to\ allocate\ $number ]]; then tried=$(mib "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"); fi
  if [[ $text =~ this\ process\ has\ $number\ memory\ in\ use ]]; then
    had=$(mib "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}")
  fi
  if [ "$had" -gt 0 ]; then echo $((tried + had)); else echo 0; fi
}

# What to ask for after so many failures.
larger() {  # HAD SEEN FAILURES
  local ask=$(($1 + step_mib * (1 << ($3 - 1))))
  if [ "$ask" -lt "$2" ]; then ask=$2; fi
  if [ "$3" -ge "$retries" ] || [ "$ask" -gt "$largest_mib" ]; then ask=$largest_mib; fi
  echo "$ask"
}

# Pending with so many shards. Held in between, so that it cannot start with what it had. Slurm itself lets a requeued job
# wait for two minutes (AuthInfo=cred_expire).
run_again() {  # SHARDS WORDS
  local tries
  scontrol requeuehold "$SLURM_JOB_ID" > /dev/null 2>&1 || return 1
  for ((tries = 0; tries < 50; ++tries)); do
    if scontrol update JobId="$SLURM_JOB_ID" TresPerNode="gres:shard:$1" > /dev/null 2>&1; then
      say "$2"
      scontrol release "$SLURM_JOB_ID" > /dev/null 2>&1
      return
    fi
    sleep 0.1
  done
  say "out of memory, and its request could not be changed: it is held"
}

main() {
  local settings host shards errors text failures seen ask
  settings=$(dirname "${SLURM_CONF:-/etc/slurm/slurm.conf}")/gpumem_epilog.conf
  # shellcheck disable=SC1090
  if [ -r "$settings" ]; then source "$settings"; fi
  [ -n "$SLURM_JOB_ID" ] || return 0
  record=$(timeout 10 scontrol show job "$SLURM_JOB_ID" 2> /dev/null) || return 0
  # An Epilog runs on every node of the job: that of the batch script does it.
  host=$(field BatchHost)
  if [ -n "$host" ] && [ -n "$SLURMD_NODENAME" ] && [ "$host" != "$SLURMD_NODENAME" ]; then return 0; fi
  shards=$(sed -n 's/.*gres[:/]shard:\([0-9]*\).*/\1/p' <<< "$(field TresPerNode)")
  # A job that went well, that somebody ended, or that has no shards.
  case $(field ExitCode) in '' | 0:* | *:[1-9]*) return 0 ;; esac
  if [ -z "$shards" ] || [ "$(field BatchFlag)" != 1 ]; then return 0; fi
  errors=$(line_of StdErr)
  text=$(end_of "$errors" | grep -E "$messages" | tail -n 1)
  [ -n "$text" ] || return 0

  failures=$(sed -n 's/^gpumem: out of memory \([0-9]*\) of .*/\1/p' <<< "$(line_of AdminComment)")
  failures=$((${failures:-0} + 1))
  seen=$(needed "$text")
  words="out of memory $failures of $((retries + 1)) times: had $shards MiB"
  if [ "$seen" -gt 0 ]; then words+=", $seen MiB were needed at least"; fi
  if [ "$shards" -ge "$largest_mib" ]; then append "$errors" "$words; given up: no GPU has more"; return; fi
  if [ "$failures" -gt "$retries" ]; then append "$errors" "$words; given up"; return; fi
  ask=$(larger "$shards" "$seen" "$failures")
  run_again "$ask" "$words; runs again with $ask MiB" ||
    append "$errors" "$words; given up: it may not be requeued"
}

main
