// Megatron-LM core r0.12: TENorm keeps what it reads; SwiGLUFunction keeps both halves, and not the activated one.
#include "gpumem/adapt/trainer_models.hpp"

#include <algorithm>

#include "adapted_jobs.hpp"
#include "expect.hpp"
#include "graphs.hpp"

namespace gpumem::adapt {
namespace {

using testing::adapted_lines;

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu", "tie_word_embeddings": true})";

std::ptrdiff_t lines_with(model::Loop loop, std::string_view part) {
  const auto graph = parse_summary(kLlama);
  EXPECT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.sequence_length = 4;
  job.precision = Precision::bf16;
  job.loop = loop;
  const std::vector<std::string> lines = adapted_lines(job);
  return std::ranges::count_if(lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(MegatronModel, HasOneKernelForSwiGlu) {
  EXPECT_EQ(lines_with(model::Loop::hf_trainer, "silu"), 2);
  EXPECT_EQ(lines_with(model::Loop::megatron, "silu"), 0);
  EXPECT_EQ(lines_with(model::Loop::megatron, "mul"), lines_with(model::Loop::hf_trainer, "mul"));
}

TEST(MegatronModel, IsNoConfigOfItsOwnArguments) {
  const auto graph = parse_summary(kLlama);
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  EXPECT_FALSE(is_megatron_model(*graph, job));
  job.loop = model::Loop::megatron;
  EXPECT_TRUE(is_megatron_model(*graph, job));
}

}  // namespace
}  // namespace gpumem::adapt
