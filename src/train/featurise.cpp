#include "featurise.hpp"

#include "gpumem/estimate/learned_facts.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::train {

core::Result<Featurise> featurise_of(const ml::ModelConfig& model, const device::GpuProfile& gpu) {
  const auto reader = ml::FeatureReader::create(model);
  if (!reader) return reader.error();
  return Featurise([reader = *reader, gpu](const model::TrainingJob& job) -> core::Result<Row> {
    auto learned = estimate::learned_facts(job, gpu, ops::catalogue(), estimate::replay_depth_of(reader));
    if (!learned) return learned.error();
    if (reader.needs_roofline()) {
      const auto figures = utilisation::roofline_figures_of(*learned, gpu, ops::catalogue());
      if (!figures) return figures.error();
      learned->facts.roofline = *figures;
    }
    Row row;
    row.kind = learned->facts.kind;
    row.features = reader.raw_features(learned->facts);
    row.sequence = reader.raw_sequence(learned->facts);
    return row;
  });
}

}  // namespace gpumem::train
