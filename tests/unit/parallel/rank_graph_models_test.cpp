// Models whose layers share weights, or ranks share layers, in a way of their own: what a rank holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/parallel/rank_graph.hpp"

namespace gpumem::parallel {
namespace {

using model::Ranks;
using testing::succeeds;

std::int64_t parameters(const core::Result<connect::WiredGraph>& graph) {
  EXPECT_TRUE(succeeds(graph));
  return graph ? graph->graph().parameters() : 0;
}

core::Result<connect::WiredGraph> ranked(std::string_view config, const model::Layout& layout,
                                         void (*change)(model::TrainingJob&) = nullptr) {
  const auto graph = architectures::read_config(config, ops::vocabulary());
  if (!graph) return graph.error();
  model::TrainingJob job(*graph, 2);
  job.sequence_length = 16;
  job.layout = layout;
  if (change != nullptr) change(job);
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return wired.error();
  return rank_graph(*wired, job, ops::catalogue());
}

/// How many of Zamba2's shared blocks the last of two stages holds. It has three hybrid layers, and no first call.
std::int64_t shared_blocks_on_last_stage(const std::string& blocks) {
  const auto stage = ranked(R"({"model_type": "zamba2", "hidden_size": 64, "num_hidden_layers": 6,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "mamba_d_state": 16, "mamba_headdim": 16,
    "n_mamba_heads": 8, "adapter_rank": 4, "hybrid_layer_ids": [0, 1, 3, 4, 5], "num_mem_blocks": )" +
                                blocks + "}",
                            {.pipeline_parallel = 2, .rank = {Ranks::last, 0}});
  EXPECT_TRUE(succeeds(stage));
  if (!stage) return 0;
  const auto layers = stage->graph().layers();
  return std::count_if(layers.begin(), layers.end(), [&](const model::Layer& layer) {
    return stage->graph().name(layer) == "gate_up_proj" && layer.tied_parameters == 0;
  });
}

TEST(RankGraphOfModels, AStageHoldsABlockOnceThatSeveralOfItsLayersCall) {
  EXPECT_EQ(shared_blocks_on_last_stage("1"), 1);
  EXPECT_EQ(shared_blocks_on_last_stage("2"), 2) << "called in turn";
}

/// Baichuan 2: queries, keys and values are one product, and the head is normed.
core::Result<connect::WiredGraph> baichuan(const std::string& more, std::int64_t ranks) {
  return ranked(R"({"model_type": "baichuan", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 32, "z_loss_weight": 0)" +
                    more + "}",
                {.tensor_parallel = ranks});
}

TEST(RankGraphOfModels, AttentionOfOneProductIsWholeOnEachRank) {
  const std::int64_t whole = parameters(baichuan("", 1));
  EXPECT_EQ(whole - parameters(baichuan("", 2)), 2 * 3 * 64 * 128 / 2) << "half of the feed-forward networks";
}

TEST(RankGraphOfModels, ANormedHeadMayBeTheEmbedding) {
  const std::int64_t apart = parameters(baichuan("", 1));
  EXPECT_EQ(apart - parameters(baichuan(R"(, "tie_word_embeddings": true)", 1)), 100 * 64);
}

std::string llama_of_words(const std::string& words) {
  return R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 96, "hidden_act": "silu", "vocab_size": )" +
         words + "}";
}

TEST(RankGraphOfModels, WordsThatRanksCannotShareEvenlyArePadded) {
  const auto shared = [](const std::string& words) {
    return parameters(ranked(llama_of_words(words), {.tensor_parallel = 4, .sequence_parallel = true}));
  };
  EXPECT_EQ(shared("126"), shared("128"));
  EXPECT_EQ(shared("128") - shared("124"), 2 * 64) << "of the table and of the head";
}

TEST(RankGraphOfModels, OneProcessMayLayQuantisedBlocksOnItsGpus) {
  const auto quantised = [](model::TrainingJob& job) {
    job.lora = 4;
    job.quantize = model::Quantization::nf4;
  };
  const auto of_one_process = [](model::TrainingJob& job) {
    job.lora = 4;
    job.quantize = model::Quantization::nf4;
    job.loop = model::Loop::hf_trainer;
  };
  const model::Layout layout = {.pipeline_parallel = 2};
  EXPECT_TRUE(succeeds(ranked(llama_of_words("128"), layout, of_one_process)));
  EXPECT_TRUE(testing::fails(ranked(llama_of_words("128"), layout, quantised), core::ErrorCode::invalid_argument, 0,
                             "without quantised weights"));
}

}  // namespace
}  // namespace gpumem::parallel
