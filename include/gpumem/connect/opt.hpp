// Input: the module tree of an OPT (OPTForCausalLM, OPTModel).
// Output: its wiring: pre-norm residual blocks (post-norm if no final norm is printed), dropout that no module shows,
// and the keys and values of every layer returned (use_cache). Dropout is 0.1 in every published OPT and attention's is
// 0; heads are 64 wide up to a width of 2,048 (OPT-1.3B), 80 wide at 2,560, and 128 above.
// Source: transformers 4.51, models/opt/modeling_opt.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& opt();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/opt_inl.hpp"
#endif
