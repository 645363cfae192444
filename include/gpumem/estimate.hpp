// The smallest way in: one question, whose answer is a MemoryEstimate. gpumem/gpumem.hpp has the other questions.
//
//     const auto estimate = gpumem::estimate_memory("gpt2", {{"batch_size", "8"}, {"gpu", "h100-80gb"}});
//     if (estimate) std::puts(gpumem::to_string(estimate->expected).c_str());
#pragma once

#include "gpumem/core/config.hpp"  // first: it says so where the compiler is set to an older C++

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/session/estimate_memory.hpp"

namespace gpumem {

using core::Bytes;
using core::Error;
using core::Result;
using core::to_string;
using estimate::MemoryEstimate;
using session::estimate_memory;
using session::OptionText;

}  // namespace gpumem

#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/bodies.hpp"
#endif
