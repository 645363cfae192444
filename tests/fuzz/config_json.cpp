// config.json of HuggingFace models: what is read can be planned, or is an error.
#include "gpumem/summary/config_json.hpp"

#include "fuzz.hpp"
#include "gpumem/analysis/analysis.hpp"

GPUMEM_FUZZ_TARGET(config_json) {
  auto graph = summary::config_json().parse(input, 0, {&ops::vocabulary()});
  if (!graph) {
    require_readable(graph.error(), input);
    return false;
  }
  constexpr std::size_t kMostLayers = 4096;  // a plan of hundreds of blocks takes its time
  if (graph->layers().size() > kMostLayers) return true;
  TrainingJob job(std::make_shared<const ModelGraph>(*std::move(graph)), 2);
  job.sequence_length = 16;
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  if (!steps) require_readable(steps.error(), input);
  return true;
}
