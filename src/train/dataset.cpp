#include "dataset.hpp"

#include <algorithm>
#include <cmath>

#include "hash.hpp"

namespace gpumem::train {

namespace {

bool all_finite(const std::vector<double>& figures) {
  return std::all_of(figures.begin(), figures.end(), [](double figure) { return std::isfinite(figure); });
}

/// As many as the specs, and such that their transforms are finite.
bool fit(const std::vector<double>& figures, const std::vector<ml::FeatureSpec>& specs) {
  if (figures.size() != specs.size() || !all_finite(figures)) return false;
  for (std::size_t index = 0; index < figures.size(); ++index) {
    if (specs[index].transform == ml::Transform::log1p && figures[index] <= -1.0) return false;
  }
  return true;
}

bool has_features(const Row& row, const ml::ModelConfig& model) {
  if (!fit(row.features, model.features)) return false;
  if (model.sequence.empty()) return row.sequence.empty();
  return std::all_of(row.sequence.begin(), row.sequence.end(),
                     [&](const std::vector<double>& layer) { return fit(layer, model.sequence); });
}

bool has_label(const Row& row, const ml::Head& head) {
  if (head.edges_mib.empty()) return row.targets.size() == head.names.size() && all_finite(row.targets);
  return row.out_of_memory || (std::isfinite(row.measured_mib) && row.measured_mib >= head.edges_mib.front());
}

core::Error wrong(const Row& row, const std::string& what) {
  return {core::ErrorCode::malformed_input, core::quoted(row.name) + " " + what, core::Place{row.source, 0, {}}};
}

}  // namespace

core::Status validate(const Dataset& data, const ml::ModelConfig& model) {
  if (data.rows.empty()) {
    return core::Error{core::ErrorCode::missing_information, "the data hold no row to train on", {}};
  }
  for (const Row& row : data.rows) {
    if (!has_features(row, model)) return wrong(row, "does not hold the features that the recipe names, all finite");
    if (!has_label(row, model.head)) return wrong(row, "has no label that the recipe's head can express");
  }
  return core::Done{};
}

std::int64_t class_of(const Row& row, const std::vector<double>& edges_mib) {
  const auto last = static_cast<std::int64_t>(edges_mib.size()) - 2;
  if (row.out_of_memory) return last;
  const auto above = std::upper_bound(edges_mib.begin(), edges_mib.end(), row.measured_mib);
  return std::clamp<std::int64_t>(above - edges_mib.begin() - 1, 0, last);
}

std::uint64_t net_of(const model::ModelGraph& graph) {
  Hash hash;
  for (const model::Layer& layer : graph.layers()) {
    hash.add(graph.op(layer));
    hash.add(layer.parameters);
    for (const model::LayerIndex input : graph.inputs(layer)) hash.add(static_cast<std::int64_t>(input));
  }
  return hash.value();
}

}  // namespace gpumem::train
