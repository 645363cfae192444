// Input: a wired graph and what the job says about freezing and quantising.
// Output: for each layer, how its weights are held and which of its tensors get gradients.
//
//   only --freeze these are not trained, everything else is
//   only --train these are trained, nothing else is
//   both                first freeze, then train
//   --lora, --quantize  the base is frozen, quantised weights are; --train adds to the adapters
//
// A tensor that is tied to another is as that one is.
#pragma once

#include <vector>

#include "gpumem/adapt/base_linears.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/adaptation.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// One a layer. Errors: invalid_argument for a pattern that means nothing, or a weight that is quantised and to be
/// trained; missing_information where there is nothing to quantise.
[[nodiscard]] core::Result<std::vector<model::WeightStorage>> weight_storage(const connect::WiredGraph& wired,
                                                                             const std::vector<BaseLinear>& linears,
                                                                             const model::TrainingJob& job);

/// The type of what is not quantised in a base that is: the precision's, so under autocast float32, as PEFT's
/// prepare_model_for_kbit_training() leaves it; a GPTQ checkpoint is in half precision whatever the precision.
/// Source: PEFT 0.14, utils/other.py.
[[nodiscard]] core::DType unquantised_dtype(model::Quantization quantization, model::Precision precision);

/// Whether every tensor of the layer is frozen.
[[nodiscard]] bool wholly_frozen(const connect::WiredGraph& wired, const model::Layer& layer,
                                 const model::WeightStorage& storage);

}  // namespace gpumem::adapt
