// What tests of tables of runs share: a shelf with one small model on it.
#pragma once

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::testing {

/// A linear layer of 36 parameters.
inline model::ModelGraph small_model(const std::string& path) {
  model::GraphBuilder builder("test", path);
  builder.infer_edges();
  const model::Attribute features[] = {{"in_features", std::int64_t{8}}, {"out_features", std::int64_t{4}}};
  builder.add({.name = "head", .op = ops::vocabulary().find_op("linear"), .attributes = features});
  return *std::move(builder).build();
}

/// Every path that ends in "small.txt" holds the small model; all other files are missing.
inline datasets::RunsOptions small_shelf() {
  const auto read = [](const std::string& path) -> core::Result<model::ModelGraph> {
    if (path.ends_with("small.txt")) return small_model(path);
    return core::Error{core::ErrorCode::unreadable_file, "cannot open", core::Place{path, 0, {}}};
  };
  return {.vocabulary = &ops::vocabulary(), .read_summary = read, .summaries = "shelf"};
}

}  // namespace gpumem::testing
