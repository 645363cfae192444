#include "serving_report.hpp"

#include <array>
#include <cstdio>
#include <optional>

#include "gpumem/core/bytes.hpp"
#include "gpumem/serve/server_command.hpp"
#include "table.hpp"

namespace gpumem::cli {

namespace {

using core::with_separators;

std::string requests_at_once(double concurrency) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", concurrency);
  return text.data();
}

std::string verdict_line(const serve::ServingEstimate& estimate) {
  if (!estimate.starts) return "does not start: " + estimate.reason + "\n";
  const bool tight = estimate.verdict() == estimate::Verdict::tight;
  const std::string starts = std::string("starts") + (tight ? ", but it is tight" : "") + ": ";
  if (!estimate.caches) {
    return starts + "it keeps no KV cache, and reads " + requests_at_once(estimate.concurrency) + " requests of " +
           with_separators(estimate.max_model_len) + " tokens in one step\n";
  }
  return starts + with_separators(estimate.kv_cache_tokens) + " tokens of KV cache, " +
         requests_at_once(estimate.concurrency) + " requests of " + with_separators(estimate.max_model_len) +
         " tokens at once\n";
}

template <typename Value, typename Write>
std::string or_none(const std::optional<Value>& value, const Write& write) {
  return value ? write(*value) : "it does not start with any";
}

std::string hundredths(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.2f", share);
  return text.data();
}

}  // namespace

std::string to_text(const serve::ServingEstimate& estimate, const Terminal& terminal) {
  Table table({{.title = "on each GPU"}, {.title = "memory", .right = true}});
  table.add({"weights", estimate.weights});
  if (estimate.adapters.count() > 0) table.add({"of them LoRA's slots", estimate.adapters});
  if (estimate.draft.count() > 0) table.add({"of them the draft model", estimate.draft});
  table.add({"activation", estimate.activation});
  table.add({"outside PyTorch", estimate.outside_pytorch});
  table.add({"KV cache", estimate.kv_cache});
  table.add({"CUDA graphs", estimate.cuda_graphs});
  std::string text = table.text(terminal) + verdict_line(estimate);
  for (const std::string& line : estimate.assumed) text += "assumed: " + line + "\n";
  return text;
}

std::string to_text(const serve::ServingLimits& limits, const Terminal& terminal) {
  const auto named = [&](std::string_view what, std::string_view option) {
    return std::string(what) + " " + std::string(serve::option_name(limits.engine, option));
  };
  Table table({{.title = "it starts up to"}, {.title = "value"}});
  table.add({named("the longest", "max_model_len"), or_none(limits.longest_context, with_separators)});
  table.add({named("the most", "max_num_seqs"), or_none(limits.most_sequences, with_separators)});
  table.add({named("the smallest", "gpu_memory_utilization"), or_none(limits.smallest_utilization, hundredths)});
  table.add({named("the fewest", "tensor_parallel_size"), or_none(limits.fewest_ranks, with_separators)});
  table.add({"the smallest GPU", limits.smallest_gpu.empty() ? "it does not start on any" : limits.smallest_gpu});
  return table.text(terminal);
}

std::string to_text(const std::vector<serve::ServingChange>& advice, const Terminal& terminal) {
  if (advice.empty()) return "no single change lets it start, or hold more tokens\n";
  Table table({{.title = "change"},
               {.title = "tokens of KV cache", .right = true},
               {.title = "requests at once", .right = true},
               {.title = "what it costs"}});
  for (const serve::ServingChange& change : advice) {
    table.add({std::string(change.option) + " " + change.value, with_separators(change.estimate.kv_cache_tokens),
               requests_at_once(change.estimate.concurrency), std::string(change.costs)});
  }
  return table.text(terminal);
}

std::string to_text(const std::vector<serve::ServingLayout>& layouts, const Terminal& terminal) {
  if (layouts.empty()) return "it starts with no layout of these GPUs\n";
  Table table({{.title = "tensor", .right = true},
               {.title = "pipeline", .right = true},
               {.title = "data", .right = true},
               {.title = "tokens of KV cache", .right = true},
               {.title = "requests at once", .right = true},
               {.title = "weights", .right = true}});
  for (const serve::ServingLayout& layout : layouts) {
    table.add({with_separators(layout.tensor_parallel), with_separators(layout.pipeline_parallel),
               with_separators(layout.data_parallel), with_separators(layout.kv_cache_tokens),
               requests_at_once(layout.concurrency), layout.estimate.weights});
  }
  return table.text(terminal);
}

}  // namespace gpumem::cli
