// Enters: a Timeline and the job that it is of. Leaves: one HTML page that shows it and needs nothing else: template
// (timeline/), style, script and data in one file. Text of the summary is in it as JSON text only.
#pragma once

#include <string>

#include "estimated_jobs.hpp"

namespace gpumem::cli {

[[nodiscard]] std::string timeline_page(const EstimatedJob& estimated_job, const Timeline& timeline);

}  // namespace gpumem::cli
