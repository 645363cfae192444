#!/bin/bash
#SBATCH --gpumem-model=vgg16.torchsummary.txt
#SBATCH --gpumem-batch=64
#SBATCH --time=00:10:00
# A training job for a cluster with gpumem's plugin: sbatch job.sh. The GPU that it gets is its device 0.
echo "$SLURM_SHARDS_ON_NODE MiB of GPU memory are this job's"
