// Input: a Timeline and its job.
// Output: one HTML page that shows it and needs nothing else: template (timeline/), style, script and data in one file.
// Text of the summary is only in its JSON text.
#pragma once

#include <string>

#include "estimated_jobs.hpp"

namespace gpumem::cli {

[[nodiscard]] std::string timeline_page(const EstimatedJob& estimated_job, const Timeline& timeline);

}  // namespace gpumem::cli
