// The log of a start of vLLM, or a table of starts. What is read has a model's name, figures from 0 on, and errors that
// people can read.
#include "fuzz.hpp"
#include "gpumem_datasets/serving_starts.hpp"

namespace {

using namespace gpumem;
using fuzz::require;

void require_figures(const datasets::LoggedStart& logged) {
  for (const auto& figure : {logged.gpu_gib, logged.weights_gib, logged.activation_gib, logged.outside_pytorch_gib,
                             logged.cuda_graphs_gib, logged.kv_cache_gib}) {
    require(figure.value_or(0.0) >= 0.0, "no figure is negative");
  }
  require(logged.kv_cache_tokens.value_or(0) >= 0, "no count is negative");
}

bool reads_table(std::string_view input) {
  const auto table = core::parse_csv(input, "fuzzed.csv");
  if (!table || !datasets::is_serving_table(*table)) return false;
  for (const datasets::ServingStart& start : datasets::read_serving_table(*table)) {
    require(start.line >= 2, "a start stands below the header");
    if (start.error) fuzz::require_readable(*start.error, input);
    require_figures(start.logged);
  }
  return true;
}

}  // namespace

GPUMEM_FUZZ_TARGET(serving_log) {
  if (reads_table(input)) return true;
  const auto start = datasets::read_vllm_log(input);
  if (!start) {
    require_readable(start.error(), input);
    return false;
  }
  require_figures(start->logged);
  require(start->logged.outcome == datasets::StartOutcome::started || !start->logged.why.empty(),
          "a start that failed says why");
  return true;
}
