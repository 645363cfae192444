// Input: a job under Megatron-LM.
// Output: Megatron's row of Framework, and the job as Megatron's arguments. They ask for overlapped reductions, because
// the time of a step assumes them (layout_time.hpp). These take no memory that the estimate does not count.
// Source: Megatron-LM core r0.12, megatron/training/arguments.py.
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework megatron();

}  // namespace gpumem::search
