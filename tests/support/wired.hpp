// What connecting made of a module tree, as text: a line a layer, with what it reads.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"

namespace gpumem::testing {

inline TrainingJob job_of(std::string_view tree, std::int64_t sequence_length) {
  auto graph = parse_summary(tree);
  EXPECT_TRUE(succeeds(graph));
  TrainingJob job(graph ? *std::move(graph) : ModelGraph(), 2);
  if (sequence_length > 0) job.sequence_length = sequence_length;
  return job;
}

/// The job with the edges that connecting gives its graph.
inline Result<TrainingJob> wired(TrainingJob job) {
  auto connected = connect::connect(job, ops::catalogue());
  if (!connected) return connected.error();
  job.graph = connected->shared_graph();
  return job;
}

/// "7 linear dense [N, 4, 8] <- 6", and after it "returned" where it applies; graph inputs are -1, -2.
inline std::vector<std::string> wiring_of(const TrainingJob& job) {
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return {core::to_string(wired.error())};
  std::vector<std::string> all;
  for (std::size_t index = 0; index < job.graph->layers().size(); ++index) {
    const model::Layer& layer = job.graph->layers()[index];
    std::string line = std::to_string(index) + " " + std::string(job.graph->op(layer));
    line += " " + std::string(job.graph->name(layer));
    for (const core::Shape& shape : wired->outputs(index)) line += " " + core::to_string(shape);
    for (const model::LayerIndex input : job.graph->inputs(layer)) line += " <- " + std::to_string(input);
    if (layer.returned) line += " returned";
    all.push_back(line);
  }
  return all;
}

/// The lines whose op is one of these.
inline std::vector<std::string> wiring_of(const TrainingJob& job, std::initializer_list<std::string_view> ops) {
  std::vector<std::string> some;
  for (const std::string& line : wiring_of(job)) {
    const std::size_t begin = line.find(' ') + 1;
    const std::string op = line.substr(begin, line.find(' ', begin) - begin);
    if (std::find(ops.begin(), ops.end(), op) != ops.end()) some.push_back(line);
  }
  return some;
}

/// A shipped tree (models/trees).
inline Result<TrainingJob> shipped_tree(const std::string& name, std::int64_t sequence_length) {
  auto graph = read_summary(std::string(GPUMEM_SOURCE_DIR) + "/models/trees/" + name + ".txt");
  if (!graph) return graph.error();
  TrainingJob job(*std::move(graph), 2);
  if (sequence_length > 0) job.sequence_length = sequence_length;
  else job.input_shape = {3, 224, 224};
  return wired(job);
}

}  // namespace gpumem::testing
