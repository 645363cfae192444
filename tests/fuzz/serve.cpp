// A server: its command on the first line, its model's config.json on the others. What is read is answered, with parts
// that fit the server's share of the GPU where it starts, or is an error.
#include <sstream>

#include "fuzz.hpp"
#include "gpumem/serve/vllm.hpp"
#include "gpumem/serve/vllm_command.hpp"

bool gpumem::fuzz::fuzz_one(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  std::istringstream line{std::string(input.substr(0, end))};
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  const auto job = serve::read_vllm_command(words, {});
  if (!job) require_readable(job.error(), input);
  const auto model = serve::read_served_model(input.substr(std::min(end + 1, input.size())));
  if (!model) require_readable(model.error(), input);
  if (!job || !model) return false;
  const auto gpu = find_profile("h100-80gb");
  require(gpu.has_value(), "the GPU is known");
  const auto start = serve::estimate_vllm(*model, *job, *gpu);
  if (!start) {
    require_readable(start.error(), input);
    return false;
  }
  require(start->starts == start->reason.empty(), "a server that does not start has a reason");
  require(start->weights.count() > 0 && start->activation.count() > 0, "parts are positive");
  if (!start->starts) return true;
  require(start->kv_cache_needed.count() <= start->kv_cache.count(), "the cache holds a request");
  require(start->max_model_len <= start->largest_max_model_len, "the longest request is at least what was asked for");
  require(start->weights.count() + start->activation.count() + start->kv_cache.count() <= start->requested.count(),
          "the parts fit the server's share");
  return true;
}
