#!/usr/bin/env bash
# Makes the folder of summaries that `gpumem evaluate RUNS.csv --summaries FOLDER` wants for xMem's published runs, whose
# table names its models only: the convolutional nets exported from torchvision with as many classes as xMem gave them,
# the transformers from models/trees. Needs PyTorch and torchvision; takes about a minute.
#   bench/accuracy/xmem_summaries.sh FOLDER
set -euo pipefail
folder=$(mkdir -p "${1:?usage: $0 FOLDER}" && cd "$1" && pwd)
cd "$(dirname "$0")/../.."
python=${PYTHON:-/usr/bin/python3}

export_net() {  # NAME TORCHVISION_NAME [--num-classes N]
  "$python" examples/pytorch/export_graph.py --model "torchvision.$2" --input 3x86x86 "${@:3}" -o "$folder/$1.json"
}

cp models/trees/*.txt "$folder"
export_net VGG16 vgg16
export_net VGG19 vgg19
export_net ResNet101 resnet101
export_net ResNet152 resnet152
export_net MobileNetV2 mobilenet_v2
export_net ConvNeXtTiny convnext_tiny
export_net ConvNeXtBase convnext_base
export_net RegNetX400MF regnet_x_400mf
export_net RegNetY400MF regnet_y_400mf
export_net MnasNet mnasnet1_0 --num-classes 10
export_net MobeNetV3Small mobilenet_v3_small --num-classes 10  # xMem's own spelling
export_net MobeNetV3Large mobilenet_v3_large --num-classes 10
