#include <cstdio>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "report.hpp"
#include "timeline_page.hpp"

namespace gpumem::cli {

namespace {

std::string to_text(const Timeline& timeline, const std::string& out, std::size_t bytes) {
  const Bytes device(timeline.context.count() + timeline.peak_reserved.count());
  return out + ": " + core::with_separators(static_cast<std::int64_t>(timeline.events)) + " events, " +
         core::to_string(device) + " of " + core::to_string(timeline.capacity) +
         (timeline.fits ? "" : " (does not fit)") + "; " + core::to_string(Bytes(static_cast<std::int64_t>(bytes))) +
         "\n";
}

}  // namespace

int run_timeline(const TimelineOptions& options) {
  const Result<device::AllocatorOptions> allocator = device::parse_allocator_options(options.request.alloc_conf);
  if (!allocator) return report_error(allocator.error());
  EstimatedJobs estimated_jobs;
  Result<EstimatedJob> estimated_job = estimated_jobs.read(options.request);
  if (!estimated_job) return report_error(estimated_job.error());
  analysis::Analysis analysis(estimated_job->job);
  const Result<Timeline> timeline = make_timeline(analysis, *estimated_job->gpu, {.allocator = *allocator});
  if (!timeline) return report_error(timeline.error());
  estimated_job->guesses = guesses_of(analysis);
  print_warnings(*estimated_job);
  const std::string page = timeline_page(*estimated_job, *timeline);
  const core::Status written = core::write_file(options.out, page);
  if (!written) return report_error(written.error());
  std::fputs(to_text(*timeline, options.out, page.size()).c_str(), stdout);
  return 0;
}

}  // namespace gpumem::cli
