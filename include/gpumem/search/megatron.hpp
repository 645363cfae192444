// Enters: a job under Megatron-LM. Leaves: Framework's row of it, and the job as its arguments have it.
// Source: Megatron-LM core r0.12, megatron/training/arguments.py. Overlapped reductions are asked for, as the step's
// time takes them to be (layout_time.hpp); they take no memory that the estimate does not count.
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework megatron();

}  // namespace gpumem::search

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/search/impl/megatron_inl.hpp"
#endif
