// A server: its command on the first line, its model's config.json on the others. What is read is answered, with parts
// that fit the server's share of the GPU where it starts, or is an error.
#include <sstream>

#include "fuzz.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"

namespace {

using namespace gpumem;
using fuzz::require;

/// The questions about a server are answered where its estimate is, and what they offer starts.
void ask_further(const serve::ServedModel& model, const serve::ServingJob& job, const GpuProfile& gpu) {
  constexpr std::int64_t kMostStages = 8;  // each question asks about every stage, some hundred times
  if (job.pipeline_parallel > kMostStages) return;
  const auto limits = serve::find_serving_limits(model, job, gpu);
  require(limits.has_value(), "limits are known where the estimate is");
  require(limits->longest_context.value_or(1) >= 1 && limits->most_sequences.value_or(1) >= 1, "limits are positive");
  const auto advice = serve::advise_server(model, job, gpu);
  require(advice.has_value(), "advice is known where the estimate is");
  for (const serve::ServingChange& change : *advice) require(change.estimate.starts, "what is advised starts");
  const auto layouts = serve::plan_server(model, job, gpu, 4);
  require(layouts.has_value(), "a plan is known where the estimate is");
  for (const serve::ServingLayout& layout : *layouts) require(layout.estimate.starts, "a layout starts");
}

}  // namespace

GPUMEM_FUZZ_TARGET(serve) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  std::istringstream line{std::string(input.substr(0, end))};
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  const auto job = serve::read_server_command(words, {});
  if (!job) require_readable(job.error(), input);
  const auto model = serve::read_served_model(input.substr(std::min(end + 1, input.size())));
  if (!model) require_readable(model.error(), input);
  if (!job || !model) return false;
  const auto gpu = find_profile("h100-80gb");
  require(gpu.has_value(), "the GPU is known");
  const auto start = serve::estimate_server(*model, *job, *gpu);
  if (!start) {
    require_readable(start.error(), input);
    return false;
  }
  require(start->starts == start->reason.empty(), "a server that does not start has a reason");
  require(start->weights.count() > 0 && start->activation.count() > 0, "parts are positive");
  ask_further(*model, *job, *gpu);
  if (!start->starts) return true;
  require(start->kv_cache_needed.count() <= start->kv_cache.count(), "the cache holds a request");
  if (job->engine == "sglang") return true;  // which cuts longer requests, and holds its activation beside its share
  require(start->max_model_len <= start->largest_max_model_len, "the longest request is at least what was asked for");
  if (job->kv_cache_memory_bytes) return true;  // whatever is left
  require(start->weights.count() + start->activation.count() + start->kv_cache.count() <= start->requested.count(),
          "the parts fit the server's share");
  return true;
}
