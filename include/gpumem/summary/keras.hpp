// Input: what Keras' model.summary() prints, in the form of Keras 2 (rules of '_' and '=') or Keras 3 (box drawing).
// Output: its layers in printed order. The channels of images come before their pixels, as in PyTorch.
//
//   Model: "vgg16"
//   _________________________________________________________________
//    Layer (type)                Output Shape              Param #
//   =================================================================
//    conv2d (Conv2D)             (None, 224, 224, 64)      1792
//
// Cells that are too long go on in the lines below, or are cut. A row with nested rows ("|") is a container.
#pragma once

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& keras();

}  // namespace gpumem::summary
