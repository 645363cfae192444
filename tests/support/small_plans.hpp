// The nets whose plans tests read event by event, and how they ask for events.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "plans.hpp"

namespace gpumem::testing {

using Events = std::vector<std::string>;

inline constexpr std::string_view kRows = R"({"name": "x", "shape": ["N", 4]})";

/// Batch 2: x takes 32 B, a and b 64 B, c 16 B, the labels 16 B.
inline constexpr std::string_view kNet = R"(
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": true}},
  {"name": "b", "op": "relu", "inputs": ["a"]},
  {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 2, "bias": true}})";

inline TrainingJob net() { return job_of(kRows, kNet, 2); }

/// How often an event comes in a phase.
inline std::ptrdiff_t count(const Events& all, std::string_view event) {
  return std::count(all.begin(), all.end(), event);
}

/// Whether these come in this order, with others between them.
inline ::testing::AssertionResult in_order(const Events& all, const Events& wanted) {
  auto from = all.begin();
  for (const std::string& event : wanted) {
    from = std::find(from, all.end(), event);
    if (from == all.end()) return ::testing::AssertionFailure() << event << " is missing, or comes too early";
    ++from;
  }
  return ::testing::AssertionSuccess();
}

/// Two linear layers without biases, batch 2: x 32 B, weights 128 B and 64 B, and the mean of squares.
inline TrainingJob products(Precision precision) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "c", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 8, "out_features": 2, "bias": false}})",
                           2);
  job.loss = model::Loss::mse;
  job.precision = precision;
  return job;
}

}  // namespace gpumem::testing
