#include "featurise.hpp"

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::train {

core::Result<Featurise> featurise_of(const ml::ModelConfig& model, const device::GpuProfile& gpu) {
  const auto reader = ml::FeatureReader::create(model);
  if (!reader) return reader.error();
  return Featurise([reader = *reader, gpu](const model::TrainingJob& job) -> core::Result<Row> {
    analysis::Analysis analysis(job);
    core::Result<ml::JobFacts> facts = ml::facts_of(analysis);
    if (!facts) return facts.error();
    if (const core::Status added = ml::add_replay(*facts, reader, analysis, gpu); !added) return added.error();
    if (reader.needs(ml::Needs::roofline)) {
      const auto figures = utilisation::roofline_figures_of(analysis, gpu);
      if (!figures) return figures.error();
      facts->roofline = *figures;
    }
    Row row;
    row.kind = facts->kind;
    row.features = reader.raw_features(*facts);
    row.sequence = reader.raw_sequence(*facts);
    return row;
  });
}

}  // namespace gpumem::train
