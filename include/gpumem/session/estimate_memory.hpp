// Input: a model's path or name, and the job's options by the names that JSON and Python give them.
// Output: the estimate. A program that asks no more compiles in a fraction of the time that session.hpp takes.
// Units: bytes.
#pragma once

#include <string>
#include <vector>

#include "gpumem/core/config.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/estimate/memory_estimate.hpp"

namespace gpumem::session {

/// An option of a job and its value, as people write them: {"batch_size", "8"}, {"gpu", "h100-80gb"}.
struct OptionText {
  std::string name;
  std::string value;
};

/// Asks the Session of the process. Thread safety: any number of threads may ask. Errors: invalid_argument for an
/// option that is none, or for a value that it does not have; those of Session::estimate().
[[nodiscard]] core::Result<estimate::MemoryEstimate> estimate_memory(const std::string& model,
                                                                     const std::vector<OptionText>& options);

}  // namespace gpumem::session
