#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

std::string_view word_of(estimate::Verdict verdict) {
  return verdict == estimate::Verdict::unknown ? "not known to fit" : estimate::to_string(verdict);
}

bool passes(estimate::Verdict verdict, bool surely) {
  return verdict == estimate::Verdict::fits || (verdict == estimate::Verdict::tight && !surely);
}

std::string line_of(const MemoryEstimate& estimate, const GpuProfile& gpu) {
  std::string text = std::string(word_of(estimate.verdict)) + ": " + core::to_string(estimate.expected) +
                     " expected, up to " + core::to_string(estimate.upper) + ", of " + room_of(estimate, gpu) + " on " +
                     gpu.name;
  if (estimate.gpus > 1) text += ", each of " + core::with_separators(estimate.gpus) + " GPUs";
  return text + "\n";
}

}  // namespace

int run_check(const CheckOptions& options) {
  const Result<Launched> launched = launched_by(options.command);
  if (!launched) return report_error(launched.error());
  if (const auto code = answered_elsewhere(*launched, options.request, Question::other, options.json)) return *code;
  Session session;
  const Result<ToldJob> told = told_by_command(session, *launched, options.request);
  if (!told) return report_error(told.error());
  const Result<EstimatedJob> estimated_job = estimate_told_job(session, *told);
  if (!estimated_job) return report_error(estimated_job.error());
  const Answer& answer = estimated_job->answers.front();
  if (!answer.estimate) return report_error(answer.estimate.error());
  const MemoryEstimate& estimate = *answer.estimate;
  const GpuProfile& gpu = *estimated_job->gpu;
  const bool passed = passes(estimate.verdict, options.surely);
  if (options.json) {
    const nlohmann::ordered_json json = {{"passes", passed},
                                         {"verdict", model::name_of(estimate::kVerdicts, estimate.verdict)},
                                         {"expected_bytes", estimate.expected.count()},
                                         {"upper_bytes", estimate.upper.count()},
                                         {"capacity_bytes", gpu.capacity().count()},
                                         {"gpu", gpu.name},
                                         {"gpus", estimate.gpus}};
    std::printf("%s\n", json.dump().c_str());
  } else {
    std::printf("%s", line_of(estimate, gpu).c_str());
  }
  return passed ? 0 : core::exit_code(ErrorCode::missing_information);
}

}  // namespace gpumem::cli
