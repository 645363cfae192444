// Input: a gpumem_job, or the words and the JSON that make one.
// Output: the JobRequest that it means, in the terms that all front ends share (gpumem/job/job_options.hpp); and a
// gpumem_job that owns its texts.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/gpumem.h"
#include "gpumem/job/job_options.hpp"

namespace gpumem::capi {

/// The size of the struct in the first version of the API, which callers of it will always pass.
inline constexpr std::size_t kFirstJob = offsetof(gpumem_job, more_options);

/// A job with the texts that it points into.
struct OwnedJob : gpumem_job {
  OwnedJob() : gpumem_job GPUMEM_JOB_INIT {}
  std::list<std::string> texts;
};

/// Whether the struct has a field for this option; the others are in `more_options`.
[[nodiscard]] bool has_field(const job::JobOption& option);

/// Errors: invalid_argument; of `more_options` those of a job's JSON.
[[nodiscard]] core::Result<job::JobRequest> request_of(const gpumem_job& job);

/// JSON text as gpumem_job_from_json() takes it. Errors: malformed_input, invalid_argument.
[[nodiscard]] core::Status job_from_json(std::string_view text, gpumem_job** job);

/// Options by their names on the command line, with their values as text. Errors: as of job_from_json.
[[nodiscard]] core::Status job_from_words(const char* const* names, const char* const* values, std::size_t count,
                                          gpumem_job** job);

/// One option of the list as C has it; null beyond the last.
[[nodiscard]] const gpumem_job_option* option_at(std::size_t index);

}  // namespace gpumem::capi
