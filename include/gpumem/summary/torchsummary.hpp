// Input: the table that torchsummary's summary(model, input_size) prints.
// Output: its layers in call order.
//
//   ----------------------------------------------------------------
//           Layer (type)               Output Shape         Param #
//   ================================================================
//               Conv2d-1         [-1, 64, 112, 112]           9,408
//
// One row a call, containers after their children. A row whose class no op describes and which holds no
// parameters is a container, kept as a mark. torchsummary counts .weight and .bias only.
#pragma once

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& torchsummary();

}  // namespace gpumem::summary
