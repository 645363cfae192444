#!/usr/bin/env bash
# Submits real jobs, with real summaries, to a real Slurm whose GPUs are pretended, and looks at what becomes of them.
#   tests/slurm/slurm_test.sh PLUGIN [FOLDER]   PLUGIN: spank_gpumem.so; FOLDER: a new one, to keep configuration and logs
# Exit code 77 (skipped) where there is no Slurm.
set -euo pipefail
plugin=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/slurm/cluster.sh"
cluster_test "${2:-}"
lacks() { if [[ "$2" == *"$3"* ]]; then fail "$1 is '$2', not expected in it: '$3'"; fi; }
wait_until() {  # SECONDS COMMAND...
  local tries=$(($1 * 10))
  shift
  while ! "$@"; do
    if [ $((tries--)) -le 0 ]; then return 1; fi
    sleep 0.1
  done
}

# Runs sbatch; $said is what it printed, $job the job's number, or nothing if it was refused.
submit() {
  local status=0
  said=$(timeout 30 sbatch --wrap "${payload:-true}" "$@" 2>&1 < /dev/null) || status=$?
  if [ $status -eq 124 ] || { [ $status -gt 128 ] && [ $status -lt 192 ]; }; then fail "sbatch $* ended with code $status: $said"; fi
  job=$(sed -n 's/^Submitted batch job //p' <<< "$said")
}
accepted() { submit "$@"; if [ -z "$job" ]; then fail "sbatch $* was refused: $said"; fi; }
refused() {  # TEXT OPTIONS...
  local text=$1
  shift
  submit "$@"
  if [ -n "$job" ]; then fail "sbatch $* was accepted"; fi
  contains "what sbatch $* said" "$said" "$text"
}
shards_of() { scontrol show job "$1" | sed -n 's/^ *TresPerNode=//p'; }
empty_queue() { [ -z "$(squeue -h)" ]; }
all_gone() { scancel -u "$(id -un)"; wait_until 30 empty_queue || fail "jobs do not end"; }

# "g1:0 15059", a line for each job that has shards now; anything else in place of the index means that one spans GPUs.
shares() {
  scontrol -d show job | sed -n 's/.*Nodes=\([^ ]*\) .*GRES=shard:\([0-9]*\)(IDX:\([^)]*\)).*/\1:\3 \2/p'
}
running() { [ "$(squeue -h -t running | wc -l)" -ge "$1" ]; }
nothing_over_committed() {
  local place shards
  declare -A taken=()
  while read -r place shards; do
    if [ -z "${gpu_mib[$place]:-}" ]; then fail "a job has its memory on $place"; continue; fi
    taken[$place]=$((${taken[$place]:-0} + shards))
    if [ "${taken[$place]}" -gt "${gpu_mib[$place]}" ]; then
      fail "$place has ${gpu_mib[$place]} MiB, and jobs with ${taken[$place]}"
    fi
  done < <(shares)
}

# The script as a site has it, with the sizes of these GPUs.
job_submit=$work/site.lua
sed 's/largest_mib = [0-9]*,/largest_mib = 81050,/; s/largest_mib_of = {}/largest_mib_of = { small = 40506 }/' \
  "$root/examples/slurm/job_submit.lua" > "$job_submit"
plugstack="optional $plugin gpu=a100-40gb deadline_ms=10000 mps_limit"
cluster_up
models=$root/models/summaries
vgg16=$models/vgg16.torchsummary.txt

say "a job that asks gets shards"
accepted --gpumem-model="$vgg16" --gpumem-batch=64
contains "the line" "$said" "gpumem: vgg16 at batch 64 needs 12.0 GiB on a100-40gb, asking for 15,059 MiB"
expect "TresPerNode" "$(shards_of "$job")" gres:shard:15059

say "a job that does not ask stays as it is"
accepted
lacks "what is said" "$said" gpumem
expect "TresPerNode" "$(shards_of "$job")" ""
accepted --gres=gpu:a100:1
expect "TresPerNode" "$(shards_of "$job")" gres:gpu:a100:1
accepted --gres=shard:100
expect "TresPerNode" "$(shards_of "$job")" gres:shard:100

say "options"
accepted --gpumem-model="$vgg16" --gpumem-batch=64 --gpumem-margin=1GiB
contains "the line" "$said" "asking for 13,322 MiB"
accepted --gpumem-model="$models/resnet50.module_tree.txt" --gpumem-batch=64 --gpumem-gpu=h100-80gb --gpumem-optimizer=sgd \
  --gpumem-precision=amp-bf16 --gpumem-checkpointing --gpumem-accumulate=2 --gpumem-input=3x224x224
contains "the line" "$said" "on h100-80gb"
accepted --gpumem-model="$models/transformer_encoder.torchinfo.txt" --gpumem-batch=8 --gpumem-seq=64 \
  --gpumem-estimator=horus
refused "go together" --gpumem-model="$vgg16"
refused "go together" --gpumem-batch=64
refused "--gpumem-batch: say a whole number of 1 or more" --gpumem-model="$vgg16" --gpumem-batch=0
refused "--gpumem-batch: say a whole number of 1 or more, not '64x'" --gpumem-model="$vgg16" --gpumem-batch=64x
refused "there is no margin '10%s%n'" --gpumem-model="$vgg16" --gpumem-batch=64 --gpumem-margin=10%s%n
refused "voodoo" --gpumem-model="$vgg16" --gpumem-batch=64 --gpumem-gpu=voodoo
refused "names no shards itself" --gpumem-model="$vgg16" --gpumem-batch=64 --gres=shard:10
accepted --gpumem-model="$vgg16" --gpumem-batch=64 --gres=gpu:a100:1
expect "TresPerNode of a job with a GPU of its own" "$(shards_of "$job")" gres:gpu:a100:1
cat > job.sh << SCRIPT
#!/bin/bash
#SBATCH --gpumem-model=$vgg16 --gpumem-batch=64
env | grep -c "^CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8467M\$"
srun env | grep "^CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
srun --quiet --gpumem-model=none --gpumem-batch=1 echo step
sbatch -o inner.out --wrap true
SCRIPT
said=$(sbatch --wait -o job.out --gpumem-batch=32 job.sh 2>&1) || fail "job.sh ended with code $?: $said"
contains "the line of a script's options, some overridden" "$said" "batch 32 needs"
expect "what the script saw" "$(grep -v '^srun: Job .* retrying' job.out | head -n 3)" $'1\nCUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8467M\nstep'
contains "what came of a job within a job" "$(cat job.out)" "Submitted batch job"
lacks "what came of a job within a job" "$(cat job.out)" "gpumem:"
job=$(sed -n 's/^Submitted batch job //p' job.out)
expect "TresPerNode of a job within a job" "$(shards_of "$job")" ""

said=$(cd "$models" && sbatch --wait -o "$work/example.out" "$root/examples/slurm/job.sh" 2>&1) || fail "$said"
expect "what the example printed" "$(cat example.out)" "15059 MiB of GPU memory are this job's"

say "srun and salloc"
said=$(timeout 60 srun --gpumem-model="$vgg16" --gpumem-batch=32 env 2>&1) || fail "srun: code $?"
contains "srun" "$said" "asking for 8,467 MiB"
contains "srun" "$said" "SLURM_SHARDS_ON_NODE=8467"
said=$(timeout 60 salloc --gpumem-model="$vgg16" --gpumem-batch=32 srun env 2>&1) || fail "salloc: code $?"
contains "salloc" "$said" "SLURM_SHARDS_ON_NODE=8467"
said=$(timeout 60 srun --gpumem-model="$vgg16" --gpumem-batch=6400 true 2>&1) && fail "srun got what no GPU has"
contains "srun" "$said" "the largest GPU that it may use has 81,050 MiB"

say "what no GPU holds is refused at once"
refused "the job needs 1,318,031 MiB on one GPU, and the largest GPU that it may use has 81,050 MiB" \
  --gpumem-model="$vgg16" --gpumem-batch=6400
refused "the largest GPU that it may use has 40,506 MiB" --gpumem-model="$vgg16" --gpumem-batch=256 \
  --gpumem-gpu=a100-80gb -p small
accepted --gpumem-model="$vgg16" --gpumem-batch=256 --gpumem-gpu=a100-80gb -p small,all
all_gone

say "a model file that is broken is refused in the parser's words"
sed 's/295,168/295;168/' "$vgg16" > broken.txt
refused "broken.txt:" --gpumem-model=broken.txt --gpumem-batch=64
sed 's/Conv2d-1 /Convoluted-1 /' "$vgg16" > unknown.txt
refused "unknown.txt:" --gpumem-model=unknown.txt --gpumem-batch=64 --gpumem-strict
contains "the message" "$said" Convoluted
refused "No such file" --gpumem-model=missing.txt --gpumem-batch=64

say "hostile paths and files neither block nor crash"
mkfifo fifo
ln -s loop loop
ln -s /dev/zero zero
truncate -s 100G huge.json
head -c 10000000 /dev/zero | tr '\0' '[' > nested.json
{ printf '{"layers":'; head -c 10000000 /dev/zero | tr '\0' '['; } > nested_layers.json
head -c 5000000 /dev/urandom > random.txt
printf 'x' > $'bell\a\n%s%n.txt'
for path in fifo zero /dev/zero /dev/tty /dev/full; do refused "" --gpumem-model=$path --gpumem-batch=64; done
refused "is a device, a pipe or a socket; name a regular file" --gpumem-model=fifo --gpumem-batch=64
refused "Too many levels of symbolic links" --gpumem-model=loop --gpumem-batch=64
refused "is larger than the 16.0 MiB that are read from a file" --gpumem-model=huge.json --gpumem-batch=64
refused "is a directory" --gpumem-model=. --gpumem-batch=64
refused "the path is too long" --gpumem-model="$(printf 'x%.0s' {1..50000})" --gpumem-batch=64
for path in nested.json nested_layers.json random.txt $'bell\a\n%s%n.txt' /proc/self/mem /proc/self/environ ""; do
  refused "gpumem:" --gpumem-model="$path" --gpumem-batch=64
done
for batch in 9223372036854775807 99999999999999999999 -1 1e9; do
  refused "" --gpumem-model="$vgg16" --gpumem-batch=$batch
done
accepted

say "the site's own mistakes reach only jobs that ask"
client_conf() { sed "s|^PlugStackConfig=.*|PlugStackConfig=$work/$1.stack|" slurm.conf > "$1.conf"; echo "$2" > "$1.stack"; }
client_conf wrong "optional $plugin gpus=a100-40gb"
client_conf required "required $plugin"
client_conf absent "optional $work/no_such_plugin.so"
export SLURM_CONF=$work/wrong.conf
accepted
refused "plugstack.conf says 'gpus=a100-40gb'" --gpumem-model="$vgg16" --gpumem-batch=64
contains "what job_submit.lua says" "$said" "no estimate came with the job"
export SLURM_CONF=$work/required.conf
accepted
refused "missing.txt: cannot open" --gpumem-model=missing.txt --gpumem-batch=64
lacks "what sbatch says, which did not get to job_submit.lua" "$said" "no estimate came with the job"
export SLURM_CONF=$work/absent.conf
accepted
refused "unrecognized option" --gpumem-model="$vgg16" --gpumem-batch=64
export SLURM_CONF=$work/slurm.conf
all_gone

say "jobs of 8,467 MiB: 4 on a GPU of 40,506 MiB, 9 on one of 81,050, and no more"
payload="sleep 300"
for _ in {1..24}; do accepted --gpumem-model="$vgg16" --gpumem-batch=32; done
started() { [ "$(shares | wc -l)" -ge 21 ]; }
wait_until 60 started || fail "only $(shares | wc -l) of 21 jobs run"
sleep 3  # three rounds of the scheduler
expect "jobs on each GPU" "$(shares | cut -d' ' -f1 | sort | uniq -c | awk '{print $2 "=" $1}' | xargs)" \
  "g1:0=4 g1:1=4 g2:0=4 g2:1=9"
expect "jobs that wait" "$(squeue -h -t pending | wc -l)" 3
nothing_over_committed
all_gone

say "a GPU is shared, or somebody's alone"
payload="sleep 300"
accepted --gpumem-model="$vgg16" --gpumem-batch=64 -w g1
accepted --gpumem-model="$vgg16" --gpumem-batch=128 -w g1
wait_until 30 running 2 || fail "$(squeue)"
for gpus in --gres=gpu:1 --gres=gpu:a100:1 --gpus=1; do accepted -w g1 $gpus; done
sleep 2
expect "jobs that run beside shards on both GPUs" "$(squeue -h -t running | wc -l)" 2
all_gone
accepted -w g1 --gres=gpu:a100:2
wait_until 30 running 1 || fail "$(squeue)"
accepted --gpumem-model="$vgg16" --gpumem-batch=16 -w g1
sleep 2
expect "jobs that run beside one that has both GPUs" "$(squeue -h -t running | wc -l)" 1
all_gone

say "jobs of many sizes: at no time more than a GPU has"
payload="sleep 1"
count=0
for batch in 8 48 96; do
  for model in resnet50.torchinfo resnet50.torchsummary vgg16.torchsummary vgg16.torchinfo densenet121.torchinfo \
    mobilenet_v2.torchsummary inception_v3.torchinfo efficientnet_b0.torchinfo vit_b_16.torchinfo; do
    accepted --gpumem-model="$models/$model.txt" --gpumem-batch=$batch -J mixed
    count=$((count + 1))
    nothing_over_committed
  done
done
drained() { nothing_over_committed; empty_queue; }
wait_until 120 drained || fail "jobs are left: $(squeue -h)"
expect "jobs that ran" "$(scontrol show job -o | grep 'JobName=mixed ' | grep -c 'JobState=COMPLETED')" $count

say "slurmctld and both nodes are well"
kill -0 "${cluster_daemons[@]}" || fail "a daemon has ended"
cluster_answers || fail "$(sinfo)"
lacks "the log" "$(cat log/slurmctld.log)" "gpumem: "

if [ $failures -ne 0 ]; then
  echo "$failures checks failed" >&2
  exit 1
fi
echo "all checks passed"
