// Input: a data set of GPUMemNet (itu-rad/GPUMemNet, CC BY 4.0): a row is one training run of an MLP or a CNN on an
// A100-40GB, with the net's layers as a list of (type, activations, parameters).
// Output: MeasuredRuns. Their jobs hold the nets as exact graphs. If a row's sizes do not give the parameters that it
// prints, its run is an error.
//
// What the list leaves open follows the scripts that made the runs (NeuroNetGen_scripts of that repository):
//   MLP        a chain; activations are output features.
//   CNN        activations are height x width; channels follow from the parameters. A block is a 3x3 convolution with
//              padding 1 and bias [, batch norm], activation [, dropout].
//   residual   shortcut (1x1 convolution and batch norm or Identity, listed first), two blocks; output: their sum.
//   dense      groups of four blocks of 32 channels, each over the concatenation of the group's input and all outputs
//              before it (of one tensor too: a copy), concatenated once more at the end. Between groups sometimes a 1x1
//              convolution to half the channels [, batch norm], ReLU, and average pooling ("d" in the list).
//   others     a chain of blocks.
//   all CNNs   end in global average pooling, flatten, linear, softmax.
// "Total Parameters" leaves out the one slope of each PReLU, "Total Activations" of a CNN its softmax; the graphs hold
// the slopes. Training: fp32, Adam, cross entropy, gradients zeroed first in each step, 4,096 samples an epoch, after a
// pass of torchsummary. The figure is the device's used memory. Counters are means of the non-zero readings that dcgmi
// dmon took each second of the 60 to 75 that a run was given, its start included; of runs out of memory they are left
// out.
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& gpumemnet_csv();

}  // namespace gpumem::datasets
