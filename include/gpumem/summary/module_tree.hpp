// Input: what print(model) prints for a PyTorch module, with or without ", N params" after each module.
// Output: its leaves in the order of the tree; no shapes, no edges.
//
//   ResNet(
//     (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False)
//     (layer1): Sequential(
//       (0): Bottleneck( ...
//     (layers): ModuleList(
//       (0-11): 12 x BertLayer( ...
//
// Read by brackets, not by indentation, and without recursion: a tree may be 100,000 levels deep. Where counts
// are printed, what a container's count exceeds its children's by are parameters of its own, and what it falls
// short by are parameters tied within it.
#pragma once

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& module_tree();

}  // namespace gpumem::summary
