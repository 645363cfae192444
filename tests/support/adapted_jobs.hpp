// Jobs with adapters, frozen and quantised layers: a small net, its adapted graph as text, and its plan's events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "small_plans.hpp"

namespace gpumem::testing {

/// Batch 2: token ids [N, 4], an embedding of 16 features, a block of q_proj, relu and v_proj, and a head of 8 classes.
inline TrainingJob small_model() {
  TrainingJob job = job_of(R"({"name": "ids", "shape": ["N", 4], "dtype": "int64"})", R"(
    {"name": "model.embed", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 32, "embedding_dim": 16}},
    {"name": "model.layers.0.q_proj", "op": "linear", "inputs": ["model.embed"],
     "attrs": {"in_features": 16, "out_features": 16, "bias": true}},
    {"name": "model.layers.0.act", "op": "relu", "inputs": ["model.layers.0.q_proj"]},
    {"name": "model.layers.0.v_proj", "op": "linear", "inputs": ["model.layers.0.act"],
     "attrs": {"in_features": 16, "out_features": 16, "bias": false}},
    {"name": "lm_head", "op": "linear", "inputs": ["model.layers.0.v_proj"],
     "attrs": {"in_features": 16, "out_features": 8, "bias": false}})",
                           2);
  job.precision = Precision::bf16;
  return job;
}

/// The adapted graph, a line a layer: "2 linear q_proj.lora_A.default [N, 4, 2] <- 1", and "frozen" where it is.
inline std::vector<std::string> adapted_lines(const TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  if (!adapted) return {core::to_string(adapted.error())};
  const ModelGraph& graph = (*adapted)->graph();
  std::vector<std::string> lines;
  for (std::size_t index = 0; index < graph.layers().size(); ++index) {
    const model::Layer& layer = graph.layers()[index];
    std::string line =
        std::to_string(index) + " " + std::string(graph.op(layer)) + " " + std::string(graph.name(layer));
    for (const core::Shape& shape : (*adapted)->outputs(index)) line += " " + core::to_string(shape);
    for (const model::LayerIndex input : graph.inputs(layer)) line += " <- " + std::to_string(input);
    if (layer.frozen) line += " frozen";
    lines.push_back(line);
  }
  return lines;
}

/// The events of a phase of the first step, by the names of the adapted graph's layers.
inline Events adapted_events(const TrainingJob& job, plan::Phase phase, std::int32_t step = 1) {
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  const auto steps = analysis.steps();
  EXPECT_TRUE(succeeds(adapted));
  EXPECT_TRUE(succeeds(steps));
  if (!adapted || !steps) return {};
  TrainingJob named = job;
  named.graph = (*adapted)->shared_graph();
  return events(named, **steps, phase, step);
}

}  // namespace gpumem::testing
