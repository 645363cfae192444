#!/usr/bin/env bash
# Jobs that pretend to run out of GPU memory, in a real Slurm with gpumem's Epilog, and what becomes of them.
#   tests/slurm/recovery_test.sh PLUGIN [FOLDER]   as slurm_test.sh
# Exit code 77 (skipped) where there is no Slurm.
set -euo pipefail
plugin=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/slurm/cluster.sh"
cluster_test "${2:-}"

# A training step that needs so many MiB of what its shards give it. It says what PyTorch 2.6 says.
cat > train.sh << 'TRAIN'
#!/bin/bash
# train.sh NEED [MESSAGE]
had=${SLURM_SHARDS_ON_NODE:-0}
echo "run $((${SLURM_RESTART_COUNT:-0} + 1)) has $had" >> "runs.$SLURM_JOB_ID"
if [ "$had" -ge "$1" ]; then exit 0; fi
gib() { awk -v mib="$1" 'BEGIN { printf "%.2f GiB", mib / 1024 }'; }
message="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate $(gib 512). GPU 0 has a total capacity of $(gib 40506) \
of which 0 bytes is free. Including non-PyTorch memory, this process has $(gib $((had - 256))) memory in use."
printf 'a line before it\n%s\n' "${2:-$message}" >&2
exit 1
TRAIN
chmod +x train.sh

submit() {  # OPTIONS... -- WORDS OF train.sh
  local options=() words
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  words=$(printf '%q ' "$@")
  said=$(timeout 30 sbatch -e "err.%j" -o "out.%j" "${options[@]}" --wrap "$work/train.sh $words" 2>&1 < /dev/null) ||
    fail "sbatch ${options[*]}: $said"
  job=$(sed -n 's/^Submitted batch job //p' <<< "$said")
}
state() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
over() { case $(state "$1") in COMPLETED | FAILED | CANCELLED) return 0 ;; *) return 1 ;; esac; }
comment() { scontrol show job "$1" | sed -n 's/^ *AdminComment=\(.*[^ ]\) *$/\1/p'; }
runs() { cut -d' ' -f4 < "runs.$1" | xargs; }
ends() {  # JOB STATE: it must stay there, for what ended may be requeued yet
  local tries quiet=0
  for ((tries = 0; tries < 600 && quiet < 20; ++tries)); do
    if over "$1"; then quiet=$((quiet + 1)); else quiet=0; fi
    sleep 0.1
  done
  expect "what becomes of job $1" "$(state "$1")" "$2"
}

job_submit=$root/examples/slurm/job_submit.lua
plugstack="optional $plugin gpu=a100-40gb deadline_ms=10000"
epilog=$root/examples/slurm/gpumem_epilog.sh
gpu_mib[g2:1]=40506
auth_info=cred_expire=5  # seconds before a requeued job may start; 120 as Slurm comes
cluster_up
vgg16=$root/models/summaries/vgg16.torchsummary.txt

say "a job that runs out waits again with more, and then goes well"
submit --gpumem-model="$vgg16" --gpumem-batch=32 -- 12000
contains "what is asked at first" "$said" "asking for 8,467 MiB"
ends "$job" COMPLETED
expect "what its runs had" "$(runs "$job")" "8467 13587"
expect "what is said of it" "$(comment "$job")" \
  "gpumem: out of memory 1 of 4 times: had 8467 MiB, 8725 MiB were needed at least; runs again with 13587 MiB"

say "what PyTorch says that it needed counts, if that is more than the step"
printf 'step_mib=100\n' > gpumem_epilog.conf
submit --gres=shard:1000 -- 1250
ends "$job" COMPLETED
expect "what its runs had" "$(runs "$job")" "1000 1260"
rm gpumem_epilog.conf

say "the step doubles, and the last run is alone"
submit --gres=shard:1000 -- 30000
ends "$job" COMPLETED
expect "what its runs had" "$(runs "$job")" "1000 6120 16360 40506"
contains "what is said of it" "$(comment "$job")" "out of memory 3 of 4 times: had 16360 MiB"

say "what no GPU holds is given up"
submit --gres=shard:1000 -- 50000
ends "$job" FAILED
expect "what its runs had" "$(runs "$job")" "1000 6120 16360 40506"
contains "what is said of it" "$(tail -n 1 "err.$job")" "gpumem: out of memory 4 of 4 times: had 40506 MiB, 40766 MiB were needed at least; given up: no GPU has more"

say "other messages of CUDA, without a figure"
for message in "RuntimeError: CUDA error: out of memory" "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"; do
  submit --gres=shard:1000 -- 6000 "$message"
  ends "$job" COMPLETED
  expect "what its runs had" "$(runs "$job")" "1000 6120"
done

say "other failures, and jobs without shards, are left alone"
submit --gres=shard:1000 -- 6000 "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
other=$job
submit -- 6000
without=$job
submit --gres=shard:1000 --no-requeue -- 6000
kept=$job
said=$(sbatch --gres=shard:1000 -e /dev/zero -o /dev/null --wrap "exit 1")
device=$(sed -n 's/^Submitted batch job //p' <<< "$said")
mkfifo pipe
tail -f pipe > /dev/null &  # so that the job itself can open it
reader=$!
said=$(sbatch --gres=shard:1000 -e pipe -o /dev/null --wrap "exit 1")
pipe=$(sed -n 's/^Submitted batch job //p' <<< "$said")
for job in "$other" "$without" "$device" "$pipe"; do
  ends "$job" FAILED
  expect "what is said of job $job" "$(comment "$job")" ""
done
ends "$kept" FAILED
contains "what is said of a job that may not be requeued" "$(tail -n 1 "err.$kept")" "given up: it may not be requeued"
expect "what its runs had" "$(runs "$kept")" "1000"
kill "$reader" 2> /dev/null || true

say "a job that its user cancels is not brought back"
said=$(sbatch --gres=shard:1000 -e err.%j -o /dev/null --wrap "echo 'CUDA out of memory' >&2; sleep 100")
job=$(sed -n 's/^Submitted batch job //p' <<< "$said")
for ((tries = 0; tries < 100; ++tries)); do if [ -s "err.$job" ]; then break; fi; sleep 0.1; done
# Slurm may lose the first one, where it comes while the job is being started.
for ((tries = 0; tries < 20; ++tries)); do
  scancel "$job" || true
  sleep 1
  if over "$job"; then break; fi
done
ends "$job" CANCELLED

say "many at once"
jobs=()
for _ in {1..20}; do
  submit --gres=shard:2000 -- 7000
  jobs+=("$job")
done
for job in "${jobs[@]}"; do
  ends "$job" COMPLETED
  expect "what the runs of job $job had" "$(runs "$job")" "2000 7120"
done

say "slurmctld and both nodes are well"
kill -0 "${cluster_daemons[@]}" || fail "a daemon has ended"
cluster_answers || fail "$(sinfo -R)"

if [ $failures -ne 0 ]; then
  echo "$failures checks failed" >&2
  exit 1
fi
echo "all checks passed"
