// Megatron's GPT of 4 layers, split over ranks: what each holds, counted by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "expect.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/parallel/rank_graph.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {
namespace {

using core::ErrorCode;
using model::Layout;
using model::Ranks;
using testing::fails;
using testing::succeeds;

constexpr std::int64_t kWords = 128 * 64;
constexpr std::int64_t kPositions = 32 * 64;
constexpr std::int64_t kNorms = 2 * 2 * 64;
constexpr std::int64_t kAttention = 4 * 64 * 64 + 4 * 64;
constexpr std::int64_t kFeedForward = 2 * 64 * 256 + 256 + 64;
constexpr std::int64_t kBlock = kNorms + kAttention + kFeedForward;

model::TrainingJob job_with(std::string_view more, const std::function<void(Layout&)>& change) {
  const std::string config = R"({"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
    "padded_vocab_size": 128, "max_position_embeddings": 32)" +
                             std::string(more) + "}";
  auto graph = architectures::read_config(config, ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job(graph ? *std::move(graph) : model::ModelGraph(), 2);
  job.sequence_length = 16;
  change(job.layout);
  return job;
}

core::Result<connect::WiredGraph> ranked(std::string_view more, const std::function<void(Layout&)>& change) {
  const model::TrainingJob job = job_with(more, change);
  const auto wired = connect::connect(job, ops::catalogue());
  EXPECT_TRUE(succeeds(wired));
  if (!wired) return wired.error();
  return rank_graph(*wired, job, ops::catalogue());
}

std::int64_t parameters(const core::Result<connect::WiredGraph>& graph) {
  EXPECT_TRUE(succeeds(graph));
  return graph ? graph->graph().parameters() : 0;
}

/// The shapes that layers of this name leave.
std::vector<std::string> shapes(const core::Result<connect::WiredGraph>& graph, std::string_view name) {
  std::vector<std::string> all;
  EXPECT_TRUE(succeeds(graph));
  if (!graph) return all;
  for (std::size_t at = 0; at < graph->graph().layers().size(); ++at) {
    if (graph->graph().name(graph->graph().layers()[at]) != name) continue;
    for (const core::Shape& shape : graph->outputs(at)) all.push_back(core::to_string(shape));
  }
  return all;
}

TEST(RankGraph, TensorParallelRanksShareColumnsRowsAndTheVocabulary) {
  const auto graph = ranked("", [](Layout& layout) { layout.tensor_parallel = 2; });
  const std::int64_t attention = 2 * 64 * 64 + 3 * 32 + 64;  // of the row layers' biases nothing is split
  const std::int64_t feed_forward = 64 * 256 + 128 + 64;
  EXPECT_EQ(parameters(graph), kWords / 2 + kPositions + 4 * (kNorms + attention + feed_forward) + 2 * 64);
  EXPECT_EQ(shapes(graph, "linear_fc1"), std::vector<std::string>(4, "[N, 16, 128]"));
  EXPECT_EQ(shapes(graph, "linear_fc2"), std::vector<std::string>(4, "[N, 16, 64]"));
  EXPECT_EQ(shapes(graph, "output_layer"), std::vector<std::string>(1, "[N, 16, 64]"));
}

TEST(RankGraph, SequenceParallelRanksShareTokensBetweenTheProducts) {
  const auto graph = ranked("", [](Layout& layout) {
    layout.tensor_parallel = 2;
    layout.sequence_parallel = true;
  });
  EXPECT_EQ(shapes(graph, "input_layernorm"), std::vector<std::string>(4, "[N, 8, 64]"));
  EXPECT_EQ(shapes(graph, "linear_qkv"), std::vector<std::string>(4, "[N, 16, 96]"));
  EXPECT_EQ(shapes(graph, "linear_proj"), std::vector<std::string>(4, "[N, 8, 64]"));
  EXPECT_EQ(shapes(graph, "output_layer"), std::vector<std::string>(1, "[N, 16, 64]"));
}

core::Result<connect::WiredGraph> llama_ranked(std::string_view more) {
  const std::string config = R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 128,
    "hidden_act": "silu")" + std::string(more) +
                             "}";
  auto graph = architectures::read_config(config, ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job(graph ? *std::move(graph) : model::ModelGraph(), 2);
  job.sequence_length = 16;
  job.layout.tensor_parallel = 2;
  job.layout.sequence_parallel = true;
  const auto wired = connect::connect(job, ops::catalogue());
  EXPECT_TRUE(succeeds(wired));
  if (!wired) return wired.error();
  return rank_graph(*wired, job, ops::catalogue());
}

TEST(RankGraph, TorchtitansRanksGatherTokensOnceForAllThatReadThem) {
  const auto graph = llama_ranked("");
  using Shapes = std::vector<std::string>;
  EXPECT_EQ(shapes(graph, "embed_tokens"), Shapes{"[N, 16, 64]"});
  EXPECT_EQ(shapes(graph, "sequence_part"), Shapes{"[N, 8, 64]"});
  EXPECT_EQ(shapes(graph, "input_layernorm"), Shapes(2, "[N, 8, 64]"));
  EXPECT_EQ(shapes(graph, "gathered"), Shapes(5, "[N, 16, 64]")) << "two a block, and for the head";
  EXPECT_EQ(shapes(graph, "q_proj"), Shapes(2, "[N, 16, 32]"));
  EXPECT_EQ(shapes(graph, "o_proj"), Shapes(2, "[N, 8, 64]"));
  EXPECT_EQ(shapes(graph, "up_proj"), Shapes(2, "[N, 16, 48]"));
  EXPECT_EQ(shapes(graph, "lm_head"), Shapes{"[N, 16, 64]"});
  const std::int64_t block = 64 * 64 / 2 * 2 + 2 * 64 * 32 / 2 + 3 * 64 * 96 / 2 + 2 * 64;
  EXPECT_EQ(parameters(graph), 128 * 64 / 2 * 2 + 2 * block + 64);
  EXPECT_EQ(parameters(llama_ranked(R"(, "tie_word_embeddings": true)")), 128 * 64 / 2 + 2 * block + 64);
}

TEST(RankGraph, ContextParallelRanksHaveAPartOfEverySequence) {
  const auto graph = ranked("", [](Layout& layout) { layout.context_parallel = 4; });
  EXPECT_EQ(shapes(graph, "linear_fc1"), std::vector<std::string>(4, "[N, 4, 256]"));
  EXPECT_EQ(parameters(graph), kWords + kPositions + 4 * kBlock + 2 * 64) << "the model is whole on each";
}

TEST(RankGraph, StagesHaveTheirBlocksAndTheEndsOfTheModel) {
  const auto on = [](std::int64_t rank) {
    return ranked("", [rank](Layout& layout) {
      layout.pipeline_parallel = 4;
      layout.rank = {model::Ranks::one, rank};
    });
  };
  EXPECT_EQ(parameters(on(0)), kWords + kPositions + kBlock);
  EXPECT_EQ(parameters(on(1)), kBlock);
  EXPECT_EQ(parameters(on(2)), kBlock);
  EXPECT_EQ(parameters(on(3)), kBlock + 2 * 64 + kWords) << "with a copy of the tied embedding";
  EXPECT_EQ(shapes(on(1), "received"), std::vector<std::string>(1, "[N, 16, 64]"));
  EXPECT_EQ(shapes(on(0), "received"), std::vector<std::string>());
  EXPECT_EQ(shapes(on(0), "sent").size(), 1U);
  EXPECT_EQ(shapes(on(3), "sent").size(), 0U);
}

TEST(RankGraph, StagesKeepWhatNoParameterHasAPartIn) {
  const auto graph = ranked(R"(, "position_embedding_type": "rope")", [](Layout& layout) {
    layout.pipeline_parallel = 2;
    layout.rank = {model::Ranks::last, 0};
  });
  EXPECT_EQ(shapes(graph, "rotary_table").size(), 2U);
  EXPECT_EQ(parameters(graph), 2 * kBlock + 2 * 64 + kWords);
}

TEST(RankGraph, VirtualStagesAreRunsOfBlocksOnOneRank) {
  const auto graph = ranked("", [](Layout& layout) {
    layout.pipeline_parallel = 2;
    layout.virtual_stages = 2;
    layout.schedule = model::Schedule::interleaved;
    layout.rank = {model::Ranks::last, 0};
  });
  EXPECT_EQ(parameters(graph), 2 * kBlock + 2 * 64 + kWords);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->stages().size(), 2U);
  EXPECT_EQ(shapes(graph, "received").size(), 2U);
  EXPECT_EQ(shapes(graph, "sent").size(), 1U);
}

/// How many blocks each pipeline rank has.
std::vector<std::int64_t> blocks_of_ranks(std::int64_t ranks, const std::function<void(Layout&)>& change,
                                          std::string_view more = "") {
  std::vector<std::int64_t> blocks;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto graph = ranked(more, [&](Layout& layout) {
      layout.pipeline_parallel = ranks;
      layout.rank = {model::Ranks::one, rank};
      change(layout);
    });
    if (!graph) return {};
    std::int64_t count = 0;
    for (const model::Layer& layer : graph->graph().layers())
      count += graph->graph().name(layer) == "linear_fc1" ? 1 : 0;
    blocks.push_back(count);
  }
  return blocks;
}

TEST(RankGraph, StagesHaveAsManyBlocksAsSomebodySays) {
  using Blocks = std::vector<std::int64_t>;
  EXPECT_EQ(blocks_of_ranks(2, [](Layout& layout) { layout.pipeline_layers = "1,3"; }), (Blocks{1, 3}));
  EXPECT_EQ(blocks_of_ranks(3, [](Layout& layout) { layout.pipeline_layers = "E|t*4|L"; }), (Blocks{0, 4, 0}))
      << "the ends may be without blocks";
  EXPECT_EQ(blocks_of_ranks(2, [](Layout& layout) { layout.first_stage_layers = 1; }), (Blocks{1, 3}));
  EXPECT_EQ(blocks_of_ranks(3, [](Layout& layout) { layout.last_stage_layers = 2; }), (Blocks{1, 1, 2}));
  EXPECT_EQ(blocks_of_ranks(
                2, [](Layout&) {}, R"(, "pipeline_model_parallel_layout": "Ettt|tL")"),
            (Blocks{3, 1}));
  const auto refused = [](std::string_view layers) {
    return ranked("", [&](Layout& layout) {
      layout.pipeline_parallel = 2;
      layout.pipeline_layers = layers;
    });
  };
  for (const std::int64_t own : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    const auto ends = ranked("", [&](Layout& layout) {
      layout.pipeline_parallel = 2;
      layout.first_stage_layers = layout.last_stage_layers = own;
    });
    EXPECT_TRUE(fails(ends, core::ErrorCode::invalid_argument, 0, "cannot share")) << own;
  }
  EXPECT_TRUE(fails(refused("2,3"), core::ErrorCode::invalid_argument, 0, "'2,3'"));
  EXPECT_TRUE(fails(refused("1,2,1"), core::ErrorCode::invalid_argument, 0, "add up"));
}

TEST(RankGraph, TorchtitanSharesUnevenlyAndMegatronRefuses) {
  // Embedding and head count as one block each: 6 on 3 stages.
  EXPECT_EQ(blocks_of_ranks(3, [](Layout&) {}), (std::vector<std::int64_t>{1, 2, 1}));
  model::TrainingJob job = job_with("", [](Layout& layout) { layout.pipeline_parallel = 3; });
  job.loop = model::Loop::megatron;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  EXPECT_TRUE(
      fails(rank_graph(*wired, job, ops::catalogue()), core::ErrorCode::invalid_argument, 0, "pipeline_layers"));
}

TEST(RankGraph, AStageOfOneBlockShowsThatBlock) {
  const auto graph = ranked("", [](Layout& layout) {
    layout.pipeline_parallel = 4;
    layout.rank = {model::Ranks::one, 1};
  });
  ASSERT_TRUE(succeeds(graph));
  const auto blocks = connect::repeated_blocks(graph->graph());
  ASSERT_EQ(blocks.size(), 1U) << "what checkpointing wraps, and what is sharded by itself";
  EXPECT_GT(blocks.front().end - blocks.front().first, 5U);
}

TEST(RankGraph, IsTheSameWhereTheLayoutSplitsTheModelAlike) {
  const auto same = [](const std::function<void(Layout&)>& left, const std::function<void(Layout&)>& right) {
    const model::TrainingJob one = job_with("", left);
    model::TrainingJob other = one;
    other.layout = {};
    right(other.layout);
    return same_rank_graph(one, other);
  };
  const auto pipeline = [](std::int64_t data, model::Rank rank) {
    return [=](Layout& layout) {
      layout.pipeline_parallel = 4;
      layout.data_parallel = data;
      layout.sharding.kind = data > 1 ? model::Shardings::fsdp2 : model::Shardings::none;
      layout.rank = rank;
    };
  };
  EXPECT_TRUE(same(pipeline(1, {model::Ranks::one, 1}), pipeline(8, {model::Ranks::one, 8})));
  EXPECT_TRUE(same(pipeline(2, {model::Ranks::max, 0}), pipeline(2, {model::Ranks::one, 1})));
  EXPECT_TRUE(same(pipeline(2, {model::Ranks::last, 0}), pipeline(2, {model::Ranks::one, 7})));
  EXPECT_FALSE(same(pipeline(2, {model::Ranks::one, 0}), pipeline(2, {model::Ranks::one, 2})));
  EXPECT_FALSE(same([](Layout& layout) { layout.tensor_parallel = 2; }, [](Layout&) {}));
}

TEST(RankGraph, DependsOnWhichStagesARankHasAndHowStagesShareTheBlocks) {
  using model::Schedule;
  const auto same = [](Schedule left, Schedule right, model::Shardings sharding) {
    model::TrainingJob one =
        job_with("", [&](Layout& layout) { layout.pipeline_parallel = layout.virtual_stages = 2; });
    one.loop = model::Loop::script;
    model::TrainingJob other = one;
    one.layout.schedule = left;
    other.layout.schedule = right;
    other.layout.sharding.kind = sharding;
    return same_rank_graph(one, other);
  };
  EXPECT_TRUE(same(Schedule::interleaved, Schedule::zero_bubble, model::Shardings::ddp));
  EXPECT_TRUE(same(Schedule::zero_bubble_v, Schedule::dual_pipe_v, model::Shardings::none));
  EXPECT_FALSE(same(Schedule::interleaved, Schedule::zero_bubble_v, model::Shardings::none)) << "other stages";
  EXPECT_FALSE(same(Schedule::interleaved, Schedule::interleaved, model::Shardings::zero_1)) << "DeepSpeed's shares";
}

TEST(RankGraph, ExpertsAreSharedOut) {
  constexpr std::string_view kExperts = R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128)";
  constexpr std::int64_t kExpert = 2 * 64 * 128 + 128 + 64;
  const auto whole = kWords + kPositions + 4 * (kNorms + kAttention + 4 * 64 + 4 * kExpert) + 2 * 64;
  const auto graph = ranked(kExperts, [](Layout& layout) {
    layout.data_parallel = 2;
    layout.expert_parallel = 2;
  });
  EXPECT_EQ(parameters(graph), whole - 4 * 2 * kExpert);
  // 16 tokens of each of 2 ranks go to 2 of 4 experts each: 16 rows a sample and expert.
  EXPECT_EQ(shapes(graph, "linear_fc1"), std::vector<std::string>(8, "[16N, 128]"));
}

TEST(RankGraph, SomeTensorParallelRanksShareAnExpert) {
  const auto on = [](std::string_view shared) {
    const std::string experts = R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128,
                                   "add_bias_linear": false)" +
                                std::string(shared);
    return ranked(experts, [](Layout& layout) {
      layout.tensor_parallel = 4;
      layout.sequence_parallel = true;
      layout.expert_parallel = 2;
    });
  };
  constexpr std::int64_t kExpert = 2 * 64 * 128;
  const std::int64_t among_4 = parameters(on(""));
  EXPECT_EQ(parameters(on(R"(, "expert_tensor_parallel_size": 2)")), among_4 + 4 * 2 * kExpert / 4);
  EXPECT_EQ(parameters(on(R"(, "expert_tensor_parallel_size": 1)")), among_4 + 4 * 2 * kExpert * 3 / 4);
  // 4 tokens of each rank; those of the ranks that share experts (2) and their weights (4, 2, 1) come together.
  EXPECT_EQ(shapes(on(""), "linear_fc1"), std::vector<std::string>(8, "[16N, 32]"));
  EXPECT_EQ(shapes(on(R"(, "expert_tensor_parallel_size": 2)"), "linear_fc1"), std::vector<std::string>(8, "[8N, 64]"));
  EXPECT_EQ(shapes(on(R"(, "expert_tensor_parallel_size": 1)"), "linear_fc1"),
            std::vector<std::string>(8, "[4N, 128]"));
  EXPECT_TRUE(fails(on(R"(, "expert_tensor_parallel_size": 3)"), ErrorCode::invalid_argument, 0, "cannot share"));
}

/// The same where only the config says how many.
std::vector<std::int64_t> blocks_on_ranks(std::string_view more, std::int64_t ranks, std::int64_t stages = 1) {
  const auto interleaved = [&](Layout& layout) {
    layout.virtual_stages = stages;
    if (stages > 1) layout.schedule = model::Schedule::interleaved;
  };
  return blocks_of_ranks(ranks, interleaved, more);
}

constexpr std::string_view kHybrid = R"(, "hybrid_layer_pattern": "M-*M", "mamba_head_dim": 32, "mamba_state_dim": 16,
    "mamba_num_groups": 2)";

TEST(RankGraph, RanksShareTheHeadsAndGroupsOfStateMixers) {
  constexpr std::int64_t kInner = 128;
  constexpr std::int64_t kConvolved = kInner + 2 * 2 * 16;
  constexpr std::int64_t kMixer = 64 * (kInner + kConvolved + 4) + 5 * kConvolved + 3 * 4 + kInner + kInner * 64;
  constexpr std::int64_t kOthers = kPositions + 2 * 64 + 4 * 2 * 64;  // norms of four half blocks, and the last
  const auto graph = ranked(kHybrid, [](Layout& layout) { layout.tensor_parallel = 2; });
  const std::int64_t attention = 2 * 64 * 64 + 3 * 32 + 64;
  EXPECT_EQ(parameters(graph), kWords / 2 + kOthers + kMixer + attention + 64 * 256 + 128 + 64);
  EXPECT_EQ(shapes(graph, "conv1d"), std::vector<std::string>(2, "[N, 16, 96]"));
  EXPECT_EQ(shapes(graph, "norm").back(), "[N, 16, 64]");
  EXPECT_TRUE(fails(ranked(kHybrid, [](Layout& layout) { layout.tensor_parallel = 4; }), ErrorCode::invalid_argument, 0,
                    "state mixer"));
}

TEST(RankGraph, KeysWithPositionsAreGathered) {
  const auto graph = ranked(R"(, "multi_latent_attention": true, "position_embedding_type": "rope", "kv_lora_rank": 16,
    "qk_head_dim": 8, "qk_pos_emb_head_dim": 4, "v_head_dim": 8)",
                            [](Layout& layout) {
                              layout.tensor_parallel = 2;
                              layout.sequence_parallel = true;
                            });
  EXPECT_EQ(shapes(graph, "kv_a_proj_with_mqa"), std::vector<std::string>(4, "[N, 8, 20]"));
  EXPECT_EQ(shapes(graph, "unsqueeze").front(), "[N, 1, 16, 4]");
  EXPECT_EQ(shapes(graph, "o_proj"), std::vector<std::string>(4, "[N, 8, 64]"));
}

TEST(RankGraph, WhatPredictsFurtherTokensIsOnTheLastStage) {
  constexpr std::int64_t kJoin = 3 * 2 * 64 + 2 * 64 * 64;
  const auto last = [&](std::string_view more) {
    return parameters(ranked(more, [](Layout& layout) {
      layout.pipeline_parallel = 2;
      layout.rank = {Ranks::last, 0};
    }));
  };
  constexpr std::string_view kApart =
      R"(, "position_embedding_type": "rope", "untie_embeddings_and_output_weights": true)";
  const std::string apart(kApart);
  EXPECT_EQ(last(apart), 2 * kBlock + 2 * 64 + kWords);
  EXPECT_EQ(last(apart + R"(, "mtp_num_layers": 1)"), 3 * kBlock + 2 * 64 + 2 * kWords + kJoin)
      << "words and head once each";
  EXPECT_EQ(last(apart + R"(, "mtp_num_layers": 2)"), 4 * kBlock + 2 * 64 + 2 * kWords + 2 * kJoin);
  const auto split = ranked(R"(, "mtp_num_layers": 1)", [](Layout& layout) {
    layout.tensor_parallel = 2;
    layout.sequence_parallel = true;
  });
  EXPECT_EQ(shapes(split, "eh_proj"), std::vector<std::string>(1, "[N, 16, 32]"));
  EXPECT_EQ(shapes(split, "gather_features"), std::vector<std::string>(1, "[N, 16, 64]"));
  EXPECT_EQ(shapes(split, "enorm"), std::vector<std::string>(1, "[N, 8, 64]"));
}

TEST(RankGraph, EndsOfAPipelineMayHaveOtherNumbersOfBlocks) {
  using Blocks = std::vector<std::int64_t>;
  EXPECT_EQ(blocks_on_ranks("", 2), (Blocks{2, 2}));
  EXPECT_EQ(blocks_on_ranks(R"(, "decoder_first_pipeline_num_layers": 1)", 2), (Blocks{1, 3}));
  EXPECT_EQ(blocks_on_ranks(R"(, "decoder_last_pipeline_num_layers": 1)", 2), (Blocks{3, 1}));
  EXPECT_EQ(blocks_on_ranks(R"(, "decoder_first_pipeline_num_layers": 1, "decoder_last_pipeline_num_layers": 1)", 3),
            (Blocks{1, 2, 1}));
  EXPECT_EQ(blocks_on_ranks(R"(, "decoder_first_pipeline_num_layers": 2, "decoder_last_pipeline_num_layers": 1)", 3),
            (Blocks{2, 1, 1}));
  EXPECT_EQ(blocks_on_ranks(R"(, "account_for_embedding_in_pipeline_split": true,
                                "account_for_loss_in_pipeline_split": true)",
                            3),
            (Blocks{1, 2, 1}));
  EXPECT_EQ(blocks_on_ranks(R"(, "decoder_first_pipeline_num_layers": 2)", 2, 2), (Blocks{2, 2}));
  EXPECT_TRUE(
      fails(ranked(R"(, "decoder_first_pipeline_num_layers": 2)", [](Layout& layout) { layout.pipeline_parallel = 4; }),
            ErrorCode::invalid_argument, 0, "cannot share evenly"));
  EXPECT_EQ(blocks_on_ranks(R"(, "account_for_embedding_in_pipeline_split": true)", 5), (Blocks{0, 1, 1, 1, 1}))
      << "a stage may have the embedding alone";
  EXPECT_TRUE(fails(ranked(R"(, "account_for_embedding_in_pipeline_split": true)",
                           [](Layout& layout) { layout.pipeline_parallel = 3; }),
                    ErrorCode::invalid_argument, 0, "cannot share evenly; say `pipeline_layers=2,1,1`"));
}

TEST(RankGraph, RefusesWhatTheModelCannotShare) {
  const auto refuses = [](std::string_view more, const std::function<void(Layout&)>& change, std::string_view why) {
    return fails(ranked(more, change), ErrorCode::invalid_argument, 0, why);
  };
  EXPECT_TRUE(refuses(R"(, "group_query_attention": true, "num_query_groups": 2)",
                      [](Layout& layout) { layout.tensor_parallel = 4; }, "2 heads of keys and values"));
  EXPECT_TRUE(refuses(
      "", [](Layout& layout) { layout.tensor_parallel = 3; }, "cannot share evenly; say `tensor_parallel=2`"));
  EXPECT_TRUE(refuses(
      "", [](Layout& layout) { layout.pipeline_parallel = 8; }, "say `pipeline_parallel=4` without `virtual_stages`"));
  EXPECT_TRUE(refuses(
      "", [](Layout& layout) { layout.context_parallel = 5; }, "tokens are not a multiple of that; say `seq_length="));
  EXPECT_TRUE(refuses(
      "", [](Layout& layout) { layout.expert_parallel = 2; }, "must divide the model's 0 experts"));
}

TEST(RankGraph, RefusesModelsOfWhichNobodySaysHow) {
  auto graph = architectures::read_config(
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 16, "n_positions": 16})",
      ops::vocabulary());
  ASSERT_TRUE(succeeds(graph));
  model::TrainingJob job(*std::move(graph), 2);
  job.sequence_length = 16;
  job.layout.tensor_parallel = 2;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  EXPECT_TRUE(fails(rank_graph(*wired, job, ops::catalogue()), ErrorCode::missing_information, 0,
                    "does not say how ranks share"));
}

TEST(RankGraph, DoesNotShareExpertsOfOneTensor) {
  auto graph = architectures::read_config(
      R"({"model_type": "gpt_oss", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "vocab_size": 128, "num_local_experts": 4, "num_experts_per_tok": 2})",
      ops::vocabulary());
  ASSERT_TRUE(succeeds(graph));
  model::TrainingJob job(*std::move(graph), 2);
  job.sequence_length = 16;
  job.layout.tensor_parallel = 2;
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  EXPECT_TRUE(fails(rank_graph(*wired, job, ops::catalogue()), ErrorCode::invalid_argument, 0, "is not modelled"));
}

/// p0 to p9 by size, as in the source's own example, in another order.
std::vector<SharedParameter> ten_parameters() {
  std::vector<SharedParameter> parameters;
  for (const std::int64_t size : {9, 0, 8, 1, 7, 2, 6, 3, 5, 4}) parameters.push_back({size + 1, false});
  return parameters;
}

Layout layout_of(std::int64_t ranks, model::Rank rank) {
  Layout layout;
  layout.data_parallel = ranks;
  layout.rank = rank;
  return layout;
}

/// The sizes that a rank holds, less 1.
std::vector<std::int64_t> held_by(const Layout& layout) {
  const auto parameters = ten_parameters();
  const auto held = held_layer_by_layer(parameters, layout, 1);
  std::vector<std::int64_t> sizes;
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    if (held[at]) sizes.push_back(parameters[at].elements - 1);
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

TEST(LayerWise, ParametersGoToTheRanksForthAndBack) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(held_by(layout_of(4, {Ranks::one, 0})), (Sizes{0, 7, 8}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::one, 1})), (Sizes{1, 6, 9}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::one, 2})), (Sizes{2, 5}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::last, 0})), (Sizes{3, 4}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::max, 0})), (Sizes{1, 6, 9})) << "16 elements and 3, as many as none other";
  EXPECT_EQ(held_by(layout_of(1, {})).size(), 10U);
}

TEST(LayerWise, TensorParallelRanksHoldTheSameParameters) {
  Layout layout = layout_of(2, {Ranks::one, 0});
  layout.tensor_parallel = 2;
  const auto first = held_by(layout);
  layout.rank = {Ranks::one, 1};
  EXPECT_EQ(held_by(layout), first);
  layout.rank = {Ranks::one, 2};
  EXPECT_NE(held_by(layout), first);
}

TEST(LayerWise, ExpertsAreSharedApart) {
  const std::vector<SharedParameter> parameters = {{5, true}, {1, false}, {2, true}, {3, false}};
  const Layout layout = layout_of(2, {Ranks::one, 0});
  EXPECT_EQ(held_layer_by_layer(parameters, layout, 1), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(held_layer_by_layer(parameters, layout, 2), (std::vector<bool>{false, true, true, false}));
}

}  // namespace
}  // namespace gpumem::parallel
