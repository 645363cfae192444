#include "standardise.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/ml/trained_model.hpp"

namespace gpumem::train {

namespace {

/// Mean and spread by Welford's recurrence.
class Statistics {
 public:
  void add(double figure) {
    ++count_;
    const double before = figure - mean_;
    mean_ += before / static_cast<double>(count_);
    squares_ += before * (figure - mean_);
  }
  [[nodiscard]] double mean() const { return mean_; }
  /// The standard deviation; 1 where it is 0, or so small that it is rounding.
  [[nodiscard]] double scale() const {
    constexpr double kRounding = 1e-9;
    const double deviation = count_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : 0.0;
    return deviation > kRounding * std::max(1.0, std::abs(mean_)) ? deviation : 1.0;
  }

 private:
  std::int64_t count_ = 0;
  double mean_ = 0.0;
  double squares_ = 0.0;
};

double plain(const ml::FeatureSpec& spec, double raw) {
  return spec.transform == ml::Transform::log1p ? std::log1p(raw) : raw;
}

/// Over the raw figures that `visit` returns.
template <typename Visit>
void fit(ml::FeatureSpec& spec, const Visit& visit) {
  Statistics statistics;
  spec.min.reset();
  spec.max.reset();
  visit([&](double raw) {
    statistics.add(plain(spec, raw));
    spec.min = std::min(spec.min.value_or(raw), raw);
    spec.max = std::max(spec.max.value_or(raw), raw);
  });
  spec.mean = statistics.mean();
  spec.scale = statistics.scale();
}

void add_sequence(Examples& examples, const ml::ModelConfig& model, const Row& row) {
  const auto length = static_cast<std::size_t>(model.network.sequence_length);
  const std::size_t columns = model.sequence.size();
  if (columns == 0) return;
  const std::size_t rows = std::min(length, row.sequence.size());
  for (std::size_t layer = 0; layer < rows; ++layer) {
    for (std::size_t column = 0; column < columns; ++column) {
      examples.sequences.push_back(ml::transformed(model.sequence[column], row.sequence[layer][column]));
    }
  }
  examples.sequences.resize(examples.sequences.size() + (length - rows) * columns);
  examples.lengths.push_back(static_cast<std::int64_t>(rows));
}

}  // namespace

void fit_statistics(ml::ModelConfig& model, const Dataset& data, std::span<const std::size_t> rows) {
  for (std::size_t feature = 0; feature < model.features.size(); ++feature) {
    fit(model.features[feature], [&](const auto& add) {
      for (const std::size_t row : rows) add(data.rows[row].features[feature]);
    });
  }
  for (std::size_t column = 0; column < model.sequence.size(); ++column) {
    fit(model.sequence[column], [&](const auto& add) {
      for (const std::size_t row : rows) {
        for (const std::vector<double>& layer : data.rows[row].sequence) add(layer[column]);
      }
    });
  }
}

std::vector<TargetScale> fit_targets(const ml::ModelConfig& model, const Dataset& data,
                                     std::span<const std::size_t> rows) {
  std::vector<TargetScale> all;
  if (model.head.spread > 0.0) return all;  // distances are as they are
  for (std::size_t output = 0; output < model.head.names.size(); ++output) {
    Statistics statistics;
    for (const std::size_t row : rows) statistics.add(data.rows[row].targets[output]);
    all.push_back({statistics.mean(), statistics.scale()});
  }
  return all;
}

Examples examples_of(const ml::ModelConfig& model, const std::vector<TargetScale>& targets, const Dataset& data,
                     std::span<const std::size_t> rows) {
  Examples examples;
  examples.count = static_cast<std::int64_t>(rows.size());
  for (const std::size_t index : rows) {
    const Row& row = data.rows[index];
    for (std::size_t feature = 0; feature < model.features.size(); ++feature) {
      examples.features.push_back(ml::transformed(model.features[feature], row.features[feature]));
    }
    add_sequence(examples, model, row);
    if (!model.head.edges_mib.empty()) examples.classes.push_back(class_of(row, model.head.edges_mib));
    if (model.head.spread > 0.0) {
      for (const double distance : row.targets) examples.targets.push_back(static_cast<float>(distance));
    }
    for (std::size_t output = 0; output < targets.size(); ++output) {
      examples.targets.push_back(
          static_cast<float>((row.targets[output] - targets[output].mean) / targets[output].scale));
    }
  }
  return examples;
}

}  // namespace gpumem::train
