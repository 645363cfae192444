// The calls of PEFT's adapters that multiply activations with small matrices: LoRA's relatives. The calls of LoRA
// itself are in adapters.hpp.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/: lora/dora.py and lora/variants.py (DoRA), adalora, vera,
// pvera, randlora, tinylora, unilora, vblora, gralora, lily, delora, deft, psoft: layer.py, Linear.forward of each.
#pragma once

#include "gpumem/adapt/peft_layer.hpp"

namespace gpumem::adapt::peft_calls {

void dora(PeftLayer& layer);
void adalora(PeftLayer& layer);
void vera(PeftLayer& layer);
void pvera(PeftLayer& layer);
void randlora(PeftLayer& layer);
void tinylora(PeftLayer& layer);
void unilora(PeftLayer& layer);
void vblora(PeftLayer& layer);
void gralora(PeftLayer& layer);
void lily(PeftLayer& layer);
void delora(PeftLayer& layer);
void deft(PeftLayer& layer);
void psoft(PeftLayer& layer);

}  // namespace gpumem::adapt::peft_calls
