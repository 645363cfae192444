#include "score.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "gpumem/core/csv.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::train {

namespace {

using Chosen = std::vector<const Prediction*>;

double share_of(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0.0;
}

void score_bins(Score& score, const Dataset& data, const ml::Head& head, const Chosen& chosen) {
  std::int64_t right = 0;
  std::int64_t near = 0;
  std::int64_t low = 0;
  std::vector<std::int64_t> in_bin(head.edges_mib.size() - 1);
  for (const Prediction* prediction : chosen) {
    const Row& row = data.rows[prediction->row];
    const std::int64_t truth = class_of(row, head.edges_mib);
    const std::int64_t said = class_of(prediction->outputs);
    ++in_bin[static_cast<std::size_t>(truth)];
    right += said == truth ? 1 : 0;
    near += std::abs(said - truth) <= 1 ? 1 : 0;
    low += said < truth ? 1 : 0;
    score.out_of_memory += row.out_of_memory ? 1 : 0;
    score.caught += row.out_of_memory && said == truth ? 1 : 0;
  }
  score.accuracy = share_of(right, score.rows);
  score.within_one = share_of(near, score.rows);
  score.underestimated = share_of(low, score.rows);
  score.majority = share_of(*std::max_element(in_bin.begin(), in_bin.end()), score.rows);
}

void score_values(Score& score, const Dataset& data, const ml::Head& head, const Chosen& chosen) {
  for (std::size_t output = 0; output < head.names.size(); ++output) {
    std::vector<double> errors;
    double sum = 0.0;
    std::int64_t covered = 0;
    for (const Prediction* prediction : chosen) {
      const double off = static_cast<double>(prediction->outputs[output]) - data.rows[prediction->row].targets[output];
      errors.push_back(std::abs(off));
      sum += std::abs(off);
      covered += off >= 0.0 ? 1 : 0;
    }
    std::sort(errors.begin(), errors.end());
    score.absolute_error.push_back(errors.empty() ? 0.0 : sum / static_cast<double>(errors.size()));
    score.median_absolute_error.push_back(datasets::percentile(errors, 0.5));
    score.covered.push_back(share_of(covered, score.rows));
  }
}

/// A run as the corrected replay (estimate/replay.hpp) has it.
datasets::Judged corrected(const Row& row, const ml::Head& head, std::span<const float> outputs) {
  ml::Mixture mixture;
  // The rule's component is at 0, so the value is its distance.
  const auto rule = std::find(head.names.begin(), head.names.end(), ml::kRuleComponent) - head.names.begin();
  for (const double distance : row.targets) {
    mixture.centres.push_back(row.targets[static_cast<std::size_t>(rule)] - distance);
  }
  mixture.shares = ml::softmax(outputs);
  mixture.spreads = ml::spreads_of(head);
  const double room = row.capacity_mib - row.context_mib;
  const bool fits = row.reserved_mib <= room;
  const ml::MixtureRange range = ml::range_of(mixture, {head.lower_share, head.upper_share},
                                              fits ? std::optional(std::log(room / row.reserved_mib)) : std::nullopt);
  const auto device = [&](double log_ratio) { return row.context_mib + row.reserved_mib * std::exp(log_ratio); };
  const double upper = device(range.upper);
  return {.measured_mib = row.measured_mib,
          .expected_mib = device(range.expected),
          .upper_mib = fits ? std::min(upper, row.capacity_mib) : upper,
          .out_of_memory = false,
          .fits = true,
          .lower_mib = device(range.lower)};
}

void score_mixture(Score& score, const Dataset& data, const ml::Head& head, const Chosen& chosen) {
  std::vector<datasets::Judged> with;
  std::vector<datasets::Judged> without;
  for (const Prediction* prediction : chosen) {
    const Row& row = data.rows[prediction->row];
    with.push_back(corrected(row, head, prediction->outputs));
    without.push_back({.measured_mib = row.measured_mib,
                       .expected_mib = row.context_mib + row.reserved_mib,
                       .upper_mib = 0.0,
                       .out_of_memory = false,
                       .fits = true,
                       .lower_mib = 0.0});
  }
  score.corrected = datasets::accuracy_of(with);
  score.uncorrected = datasets::accuracy_of(without);
}

Score score_of(std::string of, const Dataset& data, const ml::Head& head, const Chosen& chosen) {
  Score score;
  score.of = std::move(of);
  score.rows = static_cast<std::int64_t>(chosen.size());
  if (head.spread > 0.0) score_mixture(score, data, head, chosen);
  else if (head.edges_mib.empty()) score_values(score, data, head, chosen);
  else score_bins(score, data, head, chosen);
  return score;
}

std::string six_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string csv_header(const ml::Head& head) {
  std::string text = "name,source,fold,measured_mib,out_of_memory";
  if (head.edges_mib.empty()) {
    for (const std::string& name : head.names) {
      text += "," + core::csv_field((head.spread > 0.0 ? "distance " : "target ") + name) + "," + core::csv_field(name);
    }
    return text + "\n";
  }
  text += ",class,predicted_class";
  for (std::size_t bin = 0; bin + 1 < head.edges_mib.size(); ++bin) text += ",logit" + std::to_string(bin);
  return text + "\n";
}

}  // namespace

std::int64_t class_of(std::span<const float> outputs) {
  return std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
}

std::vector<Score> scores_of(const Dataset& data, const ml::Head& head, std::span<const Prediction> predictions) {
  Chosen all;
  std::map<std::int64_t, Chosen> folds;
  std::map<std::string, Chosen> sources;
  for (const Prediction& prediction : predictions) {
    all.push_back(&prediction);
    folds[prediction.fold].push_back(&prediction);
    sources[data.rows[prediction.row].source].push_back(&prediction);
  }
  std::vector<Score> scores = {score_of("all", data, head, all)};
  if (sources.size() > 1) {
    for (const auto& [source, chosen] : sources) scores.push_back(score_of(source, data, head, chosen));
  }
  for (const auto& [fold, chosen] : folds) {
    scores.push_back(score_of("fold " + std::to_string(fold + 1), data, head, chosen));
  }
  return scores;
}

std::vector<std::vector<std::int64_t>> confusion_of(const Dataset& data, const ml::Head& head,
                                                    std::span<const Prediction> predictions) {
  const std::size_t bins = head.edges_mib.empty() ? 0 : head.edges_mib.size() - 1;
  std::vector<std::vector<std::int64_t>> counts(bins, std::vector<std::int64_t>(bins));
  if (bins == 0) return counts;
  for (const Prediction& prediction : predictions) {
    const auto truth = static_cast<std::size_t>(class_of(data.rows[prediction.row], head.edges_mib));
    ++counts[truth][static_cast<std::size_t>(class_of(prediction.outputs))];
  }
  return counts;
}

ml::Residuals residuals_of(const Dataset& data, const ml::Head& head, std::span<const Prediction> predictions) {
  if (!head.edges_mib.empty() || head.spread > 0.0 || predictions.empty()) return {};
  constexpr double kCoverage = 0.9;
  ml::Residuals residuals;
  residuals.coverage = kCoverage;
  for (std::size_t output = 0; output < head.names.size(); ++output) {
    std::vector<double> above;
    for (const Prediction& prediction : predictions) {
      above.push_back(data.rows[prediction.row].targets[output] - static_cast<double>(prediction.outputs[output]));
    }
    std::sort(above.begin(), above.end());
    residuals.lower.push_back(datasets::percentile(above, (1.0 - kCoverage) / 2.0));
    residuals.upper.push_back(datasets::percentile(above, (1.0 + kCoverage) / 2.0));
  }
  return residuals;
}

std::vector<std::pair<std::string, double>> figures_of(const Score& score, const ml::Head& head) {
  std::vector<std::pair<std::string, double>> figures = {{"rows", static_cast<double>(score.rows)}};
  if (!head.edges_mib.empty()) {
    figures.insert(figures.end(), {{"accuracy", score.accuracy},
                                   {"within_one_bin", score.within_one},
                                   {"underestimated", score.underestimated},
                                   {"covered", 1.0 - score.underestimated},
                                   {"majority_class", score.majority}});
    return figures;
  }
  if (score.corrected) {
    const datasets::Accuracy& with = *score.corrected;
    const datasets::Accuracy& without = score.uncorrected;
    figures.insert(figures.end(), {{"mean_relative_error", with.relative_error.mean},
                                   {"median_relative_error", with.relative_error.median},
                                   {"right_class", with.right_class},
                                   {"covered", with.covered},
                                   {"upper_ratio", with.upper_ratio},
                                   {"replay mean_relative_error", without.relative_error.mean},
                                   {"replay median_relative_error", without.relative_error.median},
                                   {"replay right_class", without.right_class}});
    return figures;
  }
  for (std::size_t output = 0; output < head.names.size(); ++output) {
    const std::string& name = head.names[output];
    figures.emplace_back(name + " mean_absolute_error", score.absolute_error[output]);
    figures.emplace_back(name + " median_absolute_error", score.median_absolute_error[output]);
    figures.emplace_back(name + " covered", score.covered[output]);
  }
  return figures;
}

std::string to_csv(const Dataset& data, const ml::Head& head, std::span<const Prediction> predictions) {
  std::string text = csv_header(head);
  for (const Prediction& prediction : predictions) {
    const Row& row = data.rows[prediction.row];
    text += core::csv_field(row.name) + "," + core::csv_field(row.source) + "," + std::to_string(prediction.fold + 1) +
            "," + six_digits(row.measured_mib) + "," + (row.out_of_memory ? "yes" : "no");
    if (!head.edges_mib.empty()) {
      text += "," + std::to_string(class_of(row, head.edges_mib)) + "," + std::to_string(class_of(prediction.outputs));
    }
    for (std::size_t output = 0; output < prediction.outputs.size(); ++output) {
      if (head.edges_mib.empty()) text += "," + six_digits(row.targets[output]);
      text += "," + six_digits(static_cast<double>(prediction.outputs[output]));
    }
    text += "\n";
  }
  return text;
}

}  // namespace gpumem::train
