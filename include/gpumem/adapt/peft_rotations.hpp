// The calls of PEFT's adapters that scale, shift or turn what the base reads or leaves, or add to what attention
// leaves.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/: ia3, beft, road, oft, boft, hra, adaption_prompt: layer.py,
// forward of each; adaption_prompt/utils.py.
#pragma once

#include "gpumem/adapt/peft_layer.hpp"

namespace gpumem::adapt::peft_calls {

void ia3(PeftLayer& layer);
void beft(PeftLayer& layer);
void road(PeftLayer& layer);
void oft(PeftLayer& layer);
void boft(PeftLayer& layer);
void hra(PeftLayer& layer);
void adaption_prompt(PeftLayer& layer);

}  // namespace gpumem::adapt::peft_calls
