// Input: the number of blocks, and other fields of a config.
// Output: a training job of a small Transformer by its config: a Llama of HuggingFace's, or Megatron's GPT.
// Units: elements.
#pragma once

#include <string>
#include <string_view>

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::testing {

inline model::TrainingJob job_of_config(const std::string& config, std::int64_t sequence) {
  auto graph = architectures::read_config(config, ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job(graph ? *std::move(graph) : model::ModelGraph(), 1);
  job.sequence_length = sequence;
  job.precision = model::Precision::bf16_mixed;
  job.optimizer = model::Optimizer::adamw;
  return job;
}

/// Eight heads, four of keys and values.
inline model::TrainingJob small_llama(int blocks, std::int64_t hidden = 256, std::int64_t sequence = 128) {
  return job_of_config(
      R"({"model_type": "llama", "hidden_size": )" + std::to_string(hidden) + R"(, "num_hidden_layers": )" +
          std::to_string(blocks) + R"(, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": )" +
          std::to_string(2 * hidden) + R"(, "vocab_size": 1024, "hidden_act": "silu", "rms_norm_eps": 1e-05})",
      sequence);
}

/// Eight heads. `more`: further fields, each with a comma before it.
inline model::TrainingJob small_gpt(int blocks, std::string_view more = "", std::int64_t hidden = 256,
                                    std::int64_t sequence = 128) {
  return job_of_config(R"({"num_layers": )" + std::to_string(blocks) + R"(, "hidden_size": )" + std::to_string(hidden) +
                           R"(, "num_attention_heads": 8, "padded_vocab_size": 1024, "max_position_embeddings": 256)" +
                           std::string(more) + "}",
                       sequence);
}

}  // namespace gpumem::testing
