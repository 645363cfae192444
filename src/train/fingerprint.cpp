#include "fingerprint.hpp"

#include <array>
#include <cstdio>

#include "gpumem/ml/model_config.hpp"
#include "hash.hpp"

namespace gpumem::train {

namespace {

void add(Hash& hash, const TrainingOptions& options) {
  for (const std::int64_t number :
       {options.epochs, options.batch_size, static_cast<std::int64_t>(options.schedule),
        static_cast<std::int64_t>(options.seed), options.folds, options.early_stopping_patience,
        static_cast<std::int64_t>(options.objective.loss)}) {
    hash.add(number);
  }
  for (const double number :
       {options.learning_rate, options.weight_decay, options.dropout, options.encoder_dropout, options.gradient_clip,
        options.validation_share, options.class_bias, options.objective.label_smoothing}) {
    hash.add(number);
  }
  hash.add(static_cast<std::int64_t>(options.objective.members_alone ? 1 : 0));
  for (const double quantile : options.objective.quantiles) hash.add(quantile);
}

void add(Hash& hash, const Row& row) {
  hash.add(static_cast<std::int64_t>(row.group));
  hash.add(row.source);
  hash.add(static_cast<std::int64_t>(row.out_of_memory ? 1 : 0));
  hash.add(row.measured_mib);
  for (const double figure : row.features) hash.add(figure);
  for (const std::vector<double>& layer : row.sequence) {
    for (const double figure : layer) hash.add(figure);
  }
  for (const double target : row.targets) hash.add(target);
}

}  // namespace

std::string fingerprint_of(const Recipe& recipe, const Dataset& data) {
  Hash hash;
  hash.add(ml::write_model_config(recipe.model));
  add(hash, recipe.training);
  hash.add(static_cast<std::int64_t>(data.rows.size()));
  for (const Row& row : data.rows) add(hash, row);
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

}  // namespace gpumem::train
