// Input: answers about a server.
// Output: their text for people. The command line and Python share it.
#pragma once

#include <string>
#include <vector>

#include "gpumem/serve/serving_questions.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

/// A table of the parts on one GPU, the verdict, and what was assumed; each line ended.
[[nodiscard]] std::string to_text(const serve::ServingEstimate& estimate, const Terminal& terminal);
[[nodiscard]] std::string to_text(const serve::ServingLimits& limits, const Terminal& terminal);
[[nodiscard]] std::string to_text(const std::vector<serve::ServingChange>& advice, const Terminal& terminal);
[[nodiscard]] std::string to_text(const std::vector<serve::ServingLayout>& layouts, const Terminal& terminal);

}  // namespace gpumem::cli
