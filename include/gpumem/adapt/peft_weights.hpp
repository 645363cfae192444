// The calls of PEFT's adapters that make a whole matrix, as large as the base's weight, in every forward pass.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/: loha, lokr, hira, glora, fourierft, waveft, c3a, shira, osf,
// peanut, miss, frod: layer.py, get_delta_weight and forward of each; osf/utils.py, c3a/utils.py; frod/model.py.
#pragma once

#include "gpumem/adapt/peft_layer.hpp"

namespace gpumem::adapt::peft_calls {

void loha(PeftLayer& layer);
void lokr(PeftLayer& layer);
void hira(PeftLayer& layer);
void glora(PeftLayer& layer);
void fourierft(PeftLayer& layer);
void waveft(PeftLayer& layer);
void c3a(PeftLayer& layer);
void shira(PeftLayer& layer);
void osf(PeftLayer& layer);
void peanut(PeftLayer& layer);
void miss(PeftLayer& layer);
void frod(PeftLayer& layer);

}  // namespace gpumem::adapt::peft_calls
