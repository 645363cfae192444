# shellcheck shell=bash
# Sourced by what needs a Slurm cluster: a real slurmctld and two real slurmd with two pretend GPUs each, on loopback,
# as any user, without a service, a GPU or root. What a site writes into its own files: examples/slurm/README.md.
#
#   work=$(mktemp -d); trap cluster_down EXIT
#   cluster_up          writes $work/slurm.conf and starts; SLURM_CONF is exported
#   cluster_down        ends every job and daemon
#
# A test instead begins with `cluster_test FOLDER`: it is in $work then, $failures counts what fail, expect and contains
# found, and the cluster goes down with it.
#
# Set before cluster_up: plugstack (the text of plugstack.conf), job_submit (a job_submit.lua; empty: none), and epilog
# (a script that slurmd runs after each job; empty: none); auth_info as slurm.conf's AuthInfo.

PATH=$PATH:/usr/sbin:/sbin
cluster_daemons=()

# MiB of each GPU, by node and index.
declare -A gpu_mib=([g1:0]=40506 [g1:1]=40506 [g2:0]=40506 [g2:1]=81050)

# What is missing for a cluster here, in words; nothing if it can be started.
cluster_obstacle() {
  local program
  for program in slurmctld slurmd sbatch srun salloc scancel; do
    if ! command -v $program > /dev/null; then echo "$program is not installed"; return; fi
  done
  if ! getent hosts "$(hostname -s)" > /dev/null; then echo "the host's name, $(hostname -s), has no address"; fi
}

cluster_write() {  # PORT
  local host user port=$1 node
  local -A node_mib=([g1]=$((gpu_mib[g1:0] + gpu_mib[g1:1])) [g2]=$((gpu_mib[g2:0] + gpu_mib[g2:1])))
  host=$(hostname -s)
  user=$(id -un)
  mkdir -p "$work"/{state,log,run,dev,spool/g1,spool/g2}
  ln -sfn /dev/null "$work/dev/nvidia0"
  ln -sfn /dev/null "$work/dev/nvidia1"
  printf '%s\n' "$plugstack" > "$work/plugstack.conf"
  if [ -n "$job_submit" ]; then cp "$job_submit" "$work/job_submit.lua"; fi
  cat > "$work/slurm.conf" << CONF
ClusterName=gpumem
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.%n.pid
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd.%n.log
PlugStackConfig=$work/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,bf_resolution=1,sched_min_interval=0
MaxJobCount=20000
GresTypes=gpu,shard
${job_submit:+JobSubmitPlugins=lua}
${epilog:+Epilog=$epilog}
${auth_info:+AuthInfo=$auth_info}
NodeName=g1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=64 RealMemory=1000 Gres=gpu:a100:2,shard:${node_mib[g1]}
NodeName=g2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=64 RealMemory=1000 Gres=gpu:a100:1,gpu:a100x:1,shard:${node_mib[g2]}
PartitionName=all Nodes=g1,g2 Default=YES DefaultTime=5 MaxTime=60 State=UP
PartitionName=small Nodes=g1 DefaultTime=5 MaxTime=60 State=UP
CONF
  {
    echo AutoDetect=off
    echo "NodeName=g1 Name=gpu Type=a100 File=$work/dev/nvidia[0-1]"
    echo "NodeName=g2 Name=gpu Type=a100 File=$work/dev/nvidia0"
    echo "NodeName=g2 Name=gpu Type=a100x File=$work/dev/nvidia1"
    for node in g1 g2; do
      echo "NodeName=$node Name=shard Count=${gpu_mib[$node:0]} File=$work/dev/nvidia0"
      echo "NodeName=$node Name=shard Count=${gpu_mib[$node:1]} File=$work/dev/nvidia1"
    done
  } > "$work/gres.conf"
}

# A daemon of ours, which ends with this shell however that ends.
cluster_daemon() {
  local until_we_end=()
  if command -v setpriv > /dev/null; then until_we_end=(setpriv --pdeathsig TERM); fi
  "${until_we_end[@]}" "$@" > /dev/null 2>&1 < /dev/null &
  cluster_daemons+=($!)
}

cluster_answers() { [ "$(timeout 5 sinfo -h -N -p all -t idle -o %N 2> /dev/null | sort -u | wc -l)" = 2 ]; }

cluster_up() {
  local try node waited
  export SLURM_CONF=$work/slurm.conf
  for try in 1 2 3 4 5; do
    # Below the ports that systems give out themselves; taken ones make a daemon end, and others are tried.
    cluster_write $((20000 + RANDOM % 12000))
    cluster_daemon slurmctld -D -c
    for node in g1 g2; do cluster_daemon slurmd -D -c -N "$node"; done
    for ((waited = 0; waited < 300; ++waited)); do
      if cluster_answers; then return 0; fi
      if ! kill -0 "${cluster_daemons[@]}" 2> /dev/null; then break; fi
      sleep 0.1
    done
    cluster_down
  done
  echo "the cluster does not start; slurmctld says:" >&2
  tail -n 5 "$work/log/slurmctld.log" >&2
  return 1
}

# The processes that watch over jobs and are no children of ours.
cluster_stepds() {
  local process
  for process in /proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2> /dev/null)" = slurmstepd ] &&
      grep -qzxF "SLURM_CONF=$work/slurm.conf" "$process/environ" 2> /dev/null; then
      echo "${process#/proc/}"
    fi
  done
}

cluster_down() {
  local daemon waited
  if [ ${#cluster_daemons[@]} -eq 0 ]; then return 0; fi
  timeout 10 scancel --quiet -u "$(id -un)" > /dev/null 2>&1 || true
  for ((waited = 0; waited < 100; ++waited)); do
    if [ -z "$(timeout 5 squeue -h 2> /dev/null)" ]; then break; fi
    sleep 0.1
  done
  for daemon in "${cluster_daemons[@]}"; do kill "$daemon" 2> /dev/null || true; done
  for ((waited = 0; waited < 100; ++waited)); do
    if ! kill -0 "${cluster_daemons[@]}" 2> /dev/null; then break; fi
    sleep 0.1
  done
  for daemon in "${cluster_daemons[@]}"; do
    kill -KILL "$daemon" 2> /dev/null || true
    wait "$daemon" 2> /dev/null || true
  done
  cluster_daemons=()
  # Without a slurmctld they would try for ever to tell it that their job has ended.
  for daemon in $(cluster_stepds); do kill -KILL "$daemon" 2> /dev/null || true; done
}

# Skips (77) where there is no Slurm. FOLDER: a new one, to keep configuration and logs; empty: one that is removed.
cluster_test() {
  local obstacle
  obstacle=$(cluster_obstacle)
  if [ -n "$obstacle" ]; then
    echo "skipped: $obstacle" >&2
    exit 77
  fi
  if [ -n "$1" ]; then
    mkdir "$1"
    work=$(realpath "$1")
    trap cluster_down EXIT
  else
    work=$(mktemp -d)
    trap 'cluster_down; rm -rf "$work"' EXIT
  fi
  trap 'exit 1' INT TERM HUP
  cd "$work"
  failures=0
  step=
}

say() { step=$1; echo "== $1"; }
fail() { failures=$((failures + 1)); echo "FAILED: $step: $1" >&2; }
expect() { if [ "$2" != "$3" ]; then fail "$1 is '$2', expected '$3'"; fi; }
contains() { if [[ "$2" != *"$3"* ]]; then fail "$1 is '$2', expected in it: '$3'"; fi; }
