#!/usr/bin/env bash
# What gpumem's plugin and job_submit.lua cost in a real Slurm on this machine, against the same Slurm without them: one
# sbatch at a time, and many a second, in turns. All jobs are held, so that only submission is measured.
#   bench/slurm.sh PLUGIN [TURNS [RATE [JOBS]]]   PLUGIN: spank_gpumem.so; usually 200 turns of one, then rounds of 1,000
#                                                 jobs, 200 a second
# Other load on the machine shows in all times, less in their differences and ratios, and hardly in CPU time.
set -euo pipefail
plugin=$(realpath "$1")
turns=${2:-200}
rate=${3:-200}
jobs=${4:-1000}
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/tests/slurm/cluster.sh"
obstacle=$(cluster_obstacle)
if [ -n "$obstacle" ]; then
  echo "cannot measure: $obstacle" >&2
  exit 1
fi
folder=$(mktemp -d)
trap 'SLURM_CONF=$folder/with/slurm.conf cluster_down; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

mkdir "$folder/without" "$folder/with"
work=$folder/without plugstack="" job_submit=""
cluster_up
controller_without=${cluster_daemons[-3]}
work=$folder/with plugstack="optional $plugin gpu=a100-40gb" job_submit=$root/examples/slurm/job_submit.lua
cluster_up
controller_with=${cluster_daemons[-3]}
cd "$folder"
model=$root/models/summaries/resnet50.torchsummary.txt

# The same job, with and without gpumem.
asking=(sbatch -H -Q --wrap true --gpumem-model="$model" --gpumem-batch=32)
by_hand=(sbatch -H -Q --wrap true --gres=shard:4878)

# Microseconds of one submission.
timed() {  # CLUSTER COMMAND...
  local began=${EPOCHREALTIME/./}
  SLURM_CONF=$folder/$1/slurm.conf "${@:2}" > /dev/null 2> "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
  echo $((${EPOCHREALTIME/./} - began))
}

echo "One sbatch of $model, batch 32: $turns turns of three"
for ((turn = 0; turn < turns; ++turn)); do
  echo "$(timed without "${by_hand[@]}") $(timed with "${by_hand[@]}") $(timed with "${asking[@]}")"
done > turns
column_median() { awk "{print $1}" turns | sort -n | awk '{a[NR] = $1} END {printf "%.1f", a[int((NR + 1) / 2)] / 1000}'; }
echo "  without gpumem           $(column_median '$1') ms"
echo "  with it, not asking      $(column_median '$2') ms, median difference in a turn $(column_median '$2 - $1') ms"
echo "  with it, asking          $(column_median '$3') ms, median difference in a turn $(column_median '$3 - $1') ms"

# Starts $jobs of them, $rate a second as far as the machine can; what came of it, in $per_second and, in ms of CPU time
# each, $client and $server.
mkfifo nothing
exec {nothing}<> nothing  # nobody writes to it: reading is a sleep that starts no program
ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
paced() {  # CLUSTER COMMAND...
  local job began now ahead daemon=controller_$1 before used
  before=$(ticks "${!daemon}")
  SLURM_CONF=$folder/$1/slurm.conf
  TIMEFORMAT='%3U %3S'
  began=${EPOCHREALTIME/./}
  used=$({
    time {
      for ((job = 0; job < jobs; ++job)); do
        now=${EPOCHREALTIME/./}
        ahead=$((began + job * 1000000 / rate - now))
        if [ $ahead -gt 0 ]; then
          read -r -t "$(printf '0.%06d' $ahead)" -u "$nothing" || true
        fi
        "${@:2}" > /dev/null 2>> "$folder/errors" &
      done
      wait
    }
  } 2>&1)
  now=${EPOCHREALTIME/./}
  per_second=$(awk "BEGIN {printf \"%.1f\", $jobs * 1000000 / ($now - $began)}")
  client=$(awk -v jobs="$jobs" '{printf "%.2f", ($1 + $2) * 1000 / jobs}' <<< "$used")
  server=$(awk "BEGIN {printf \"%.2f\", ($(ticks "${!daemon}") - $before) * 1000 / $(getconf CLK_TCK) / $jobs}")
}
echo "Rounds of $jobs submissions, $rate a second asked for"
echo "  round   without gpumem: a second, CPU ms of client and slurmctld       with it        ratio"
for round in 1 2 3; do
  paced without "${by_hand[@]}"
  line="$per_second $client $server"
  first=$per_second
  paced with "${asking[@]}"
  printf '  %d   %s   %s   %s\n' "$round" "$line" "$per_second $client $server" \
    "$(awk "BEGIN {printf \"%.3f\", $per_second / $first}")"
done
submitted() { SLURM_CONF=$folder/$1/slurm.conf squeue -h | wc -l; }
echo "Jobs in the queues: $(submitted without) without, $(submitted with) with, of $((turns + 3 * jobs)) and $((2 * turns + 3 * jobs))"
