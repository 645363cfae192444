#include "gpumem_datasets/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_set>
#include <utility>

namespace gpumem::datasets {

using namespace place;

namespace {

core::Error invalid(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// Finite, and not negative.
bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0.0; }

/// The memory that this many GPUs of the server have at least, if there are this many.
core::Bytes held_by(const std::vector<core::Bytes>& largest_first, std::int64_t gpus) {
  return largest_first[static_cast<std::size_t>(gpus) - 1];
}

core::Status validate(const SimulatedJob& job, const std::vector<core::Bytes>& largest_first) {
  const std::string name = "job " + core::quoted(job.id);
  if (job.id.empty()) return invalid("a job has no id");
  if (!is_time(job.arrival_s)) return invalid(name + " arrives at a time that is negative or not a number");
  if (!is_time(job.duration_s) || job.duration_s == 0.0) return invalid(name + " takes no time; give it a duration");
  if (job.need.count() <= 0) return invalid(name + " needs no memory; give it what it needs");
  if (job.expected.count() < 0 || job.reserve.count() < 0) return invalid(name + " has a negative estimate");
  const bool share = job.smact >= 0.0 && job.smact <= 1.0;
  if (!share) return invalid(name + " has an SM activity that is not between 0 and 1");
  if (job.gpus < 1) return invalid(name + " asks for " + std::to_string(job.gpus) + " GPUs; it needs 1 or more");
  if (static_cast<std::size_t>(job.gpus) > largest_first.size()) {
    return invalid(name + " asks for " + core::with_separators(job.gpus) + " GPUs; the server has " +
                   std::to_string(largest_first.size()));
  }
  const core::Bytes most = held_by(largest_first, job.gpus);
  if (job.need <= most) return core::Done{};
  return invalid(name + " needs " + core::to_string(job.need) + " of each GPU, more than " +
                 (job.gpus == 1 ? "any" : "enough of them") + " has (" + core::to_string(most) +
                 "): it can never run there");
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::finished: return "finished";
    case Verdict::refused: return "refused";
    case Verdict::given_up: return "given_up";
  }
  return "unknown";
}

core::Status validate(const std::vector<SimulatedJob>& jobs, const Server& server) {
  if (jobs.empty()) return invalid("there are no jobs to simulate");
  constexpr std::size_t kMostJobs = 10'000'000;
  if (jobs.size() > kMostJobs) return invalid("there are more than 10,000,000 jobs");
  const core::Status valid = validate(server);
  if (!valid) return valid.error();
  std::vector<core::Bytes> largest_first;
  for (const ServerGpu& gpu : server.gpus) {
    if (!gpu.jobs.empty())
      return invalid("GPU " + core::quoted(gpu.id) + " has jobs already; begin with an empty server");
    largest_first.push_back(gpu.total);
  }
  std::sort(largest_first.begin(), largest_first.end(), std::greater<>());
  std::unordered_set<std::string_view> names;
  for (const SimulatedJob& job : jobs) {
    const core::Status fit = validate(job, largest_first);
    if (!fit) return fit.error();
    if (!names.insert(job.id).second) return invalid("two jobs have the id " + core::quoted(job.id));
  }
  return core::Done{};
}

core::Status validate(const SimulationOptions& options, const std::optional<PowerModel>& power) {
  if (!is_time(options.window_s)) return invalid("the window between placements is negative or not a number");
  if (!is_time(options.ramp_s)) return invalid("the time in which jobs grow is negative or not a number");
  if (!power || (is_time(power->idle_w) && is_time(power->peak_w) && power->idle_w <= power->peak_w)) {
    return core::Done{};
  }
  return invalid("the idle power must not be negative, nor above the peak power");
}

}  // namespace gpumem::datasets
