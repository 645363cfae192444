// Recordings of a training step: what is read can be planned at any batch, or is an error.
#include "gpumem/summary/recording.hpp"

#include "fuzz.hpp"
#include "gpumem/analysis/analysis.hpp"

GPUMEM_FUZZ_TARGET(recording) {
  auto graph = summary::recording().parse(input, 0, {&ops::vocabulary()});
  if (!graph) {
    require_readable(graph.error(), input);
    return false;
  }
  const auto shared = std::make_shared<const ModelGraph>(*std::move(graph));
  for (const std::int64_t batch_size : {std::int64_t{1}, std::int64_t{7}, INT64_MAX}) {
    analysis::Analysis analysis(TrainingJob(shared, batch_size));
    const auto steps = analysis.steps();
    if (!steps) require_readable(steps.error(), input);
    const auto work = analysis.work();
    if (!work) require_readable(work.error(), input);
  }
  return true;
}
