// Input: advice for a job. Output: what `gpumem advise` prints of it. The web page and the C API show the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "estimated_jobs.hpp"
#include "gpumem/estimate/advise.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

struct FoundAdvice {
  EstimatedJob estimated_job;
  std::string_view estimator;
  estimate::Advice advice;
};
/// Errors: those of estimate::advise(). What is found names the estimator, which must live as long.
[[nodiscard]] Result<FoundAdvice> advice_of(EstimatedJob estimated_job, const Estimator& estimator);

/// Whether the job fits, or something is advised that makes it fit.
[[nodiscard]] bool helps(const estimate::Advice& advice);
[[nodiscard]] Error no_advice(const FoundAdvice& found);
[[nodiscard]] nlohmann::ordered_json to_json(const FoundAdvice& found);
[[nodiscard]] std::string to_text(const FoundAdvice& found, const Terminal& terminal);

}  // namespace gpumem::cli
