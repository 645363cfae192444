// Framework: which layouts a training framework has, and how to write a job in its settings. One file a framework;
// frameworks.hpp is the list.
// Units: counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/model/training_job.hpp"
#include "gpumem/search/block_work.hpp"

namespace gpumem::search {

struct Framework {
  std::string_view name;                   ///< on the command line: "megatron"
  std::string_view description;            ///< one line for people
  std::string_view settings;               ///< what settings_of() writes: "torchtitan TOML"
  model::Loop loop = model::Loop::script;  ///< of its training program
  bool tensor_parallel = false;            ///< with sequence parallelism, where the model's is modelled
  bool context_parallel = false;
  bool pipeline_parallel = false;
  bool expert_parallel = false;
  /// How a group of ranks `apart` from each other may share parameters, gradients and states; `node` GPUs are in a
  /// node.
  std::vector<model::Sharding> (*shardings)(std::int64_t ranks, std::int64_t apart, std::int64_t node) = nullptr;
  std::vector<Checkpointing> (*checkpointings)() = nullptr;
  bool tokens_alone = false;  ///< it trains models that read tokens, and no others
  /// The job in the framework's own words, ready to paste. `blocks`: how many the model has; `node`: GPUs in a node.
  std::string (*settings_of)(const model::TrainingJob& job, std::int64_t blocks, std::int64_t node) = nullptr;
};

/// Samples that a step trains on.
[[nodiscard]] constexpr std::int64_t global_batch(const model::TrainingJob& job) {
  return job.layout.data_parallel * job.batch_size * job.gradient_accumulation;
}

}  // namespace gpumem::search
