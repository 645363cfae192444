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

/// Two tensor parallel ranks share each sequence, and two pairs of them the experts. Source: Megatron-LM r0.16,
/// core/transformer/moe/token_dispatcher.py; ms-swift 4 leaves experts' weights whole.
TEST(MegatronModel, SendsPartsOfSequencesToWholeExperts) {
  const auto graph = parse_summary(
      R"({"model_type": "qwen3_moe", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "head_dim": 8,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu",
          "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1,
          "tie_word_embeddings": false})");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 1);
  job.sequence_length = 16;
  job.precision = Precision::bf16;
  job.layout.tensor_parallel = 2;
  job.layout.sequence_parallel = true;
  job.layout.data_parallel = 2;
  job.layout.expert_parallel = 4;
  EXPECT_TRUE(testing::fails(analysis::Analysis(job).ranked(), core::ErrorCode::invalid_argument, 0, "Megatron"));
  job.loop = model::Loop::megatron;
  analysis::Analysis analysis(job);
  const auto rank = analysis.ranked();
  ASSERT_TRUE(testing::succeeds(rank));
  // 8 tokens of each of 4 ranks go to 2 of 4 experts each: 16 rows for the rank's one expert.
  const model::ModelGraph& on_rank = (*rank)->graph();
  std::string seen;
  for (std::size_t at = 0; at < on_rank.layers().size(); ++at) {
    if (on_rank.name(on_rank.layers()[at]) != "gate_proj") continue;
    seen += core::to_string((*rank)->outputs(at)[0]) + " " + std::to_string(on_rank.layers()[at].parameters) + " ";
  }
  EXPECT_EQ(seen, "[16N, 24] 384 [16N, 24] 384 ");
}

}  // namespace
}  // namespace gpumem::adapt
