// Input: a model, a gpumem_job and a gpumem_plan_question.
// Output: the layouts that fit, in the caller's array.
// Units: those of gpumem.h.
#pragma once

#include <cstddef>
#include <memory>

#include "gpumem/core/result.hpp"
#include "gpumem/gpumem.h"
#include "gpumem/session/session.hpp"

namespace gpumem::capi {

/// At most `count` layouts; `found` takes how many. Errors: invalid_argument; those of search::find_layouts().
[[nodiscard]] core::Status make_plan(const std::shared_ptr<const session::Model>& model, const gpumem_job* given,
                                     const gpumem_plan_question* asked, gpumem_layout* layouts, std::size_t count,
                                     std::size_t* found);

}  // namespace gpumem::capi
