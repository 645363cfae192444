// Input: answers about a post-training job.
// Output: their text for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpumem/posttrain/estimate_post_training.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

/// A table of the phases, one of the parts at the peak, the verdict, and what was assumed; each line ended.
[[nodiscard]] std::string to_text(const posttrain::PostTrainingEstimate& estimate, const device::GpuProfile& gpu,
                                  const Terminal& terminal);
[[nodiscard]] std::string to_text(const posttrain::PostTrainingLimits& limits, const Terminal& terminal);
[[nodiscard]] std::string to_text(const std::vector<posttrain::PostTrainingChange>& advice, const Terminal& terminal);
[[nodiscard]] std::string to_text(const std::vector<posttrain::PostTrainingLayout>& layouts, const Terminal& terminal);
/// A line of each: "assumed: lengths: ...".
[[nodiscard]] std::string to_text(std::span<const estimate::Assumption> assumed);

}  // namespace gpumem::cli
