// Input: the table that torchinfo's summary(model, ...) prints, with any choice of columns and row settings.
// Output: its layers in execution order.
//
//   ==========================================================================================
//   Layer (type:depth-idx)                   Output Shape              Param #
//   ==========================================================================================
//   ResNet                                   [32, 1000]                --
//   ├─Conv2d: 1-1                            [32, 64, 112, 112]        9,408
//
// A row with deeper rows below it is a container; what it prints as Param # are parameters of its own in addition to
// theirs. "(recursive)" is a layer seen before, its parameters counted there; "(9,408)" is frozen.
#pragma once

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& torchinfo();

}  // namespace gpumem::summary
