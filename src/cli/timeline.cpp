#include <cstdio>

#include "answers.hpp"
#include "gpumem/core/file.hpp"
#include "report.hpp"
#include "timeline_page.hpp"

namespace gpumem::cli {

namespace {

std::string to_text(const Timeline& timeline, const std::string& out, std::size_t bytes) {
  const Bytes device(timeline.context.count() + timeline.peak_reserved.count());
  return out + ": " + core::with_separators(static_cast<std::int64_t>(timeline.events)) + " events, " +
         core::to_string(device) + " of " + core::to_string(timeline.capacity) +
         (timeline.verdict == estimate::Verdict::fits ? "" : " (" + std::string(to_string(timeline.verdict)) + ")") +
         "; " + core::to_string(Bytes(static_cast<std::int64_t>(bytes))) + "\n";
}

}  // namespace

int run_timeline(const TimelineOptions& options) {
  Session session;
  const Result<FoundTimeline> found = find_timeline(options.request, session);
  if (!found) return report_error(found.error());
  print_warnings(found->estimated_job);
  const std::string page = timeline_page(found->estimated_job, found->timeline);
  const core::Status written = core::write_file(options.out, page);
  if (!written) return report_error(written.error());
  std::fputs(to_text(found->timeline, options.out, page.size()).c_str(), stdout);
  return 0;
}

}  // namespace gpumem::cli
