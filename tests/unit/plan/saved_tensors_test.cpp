// What Megatron discards and offloads, module by module.
#include "gpumem/plan/forward_pass.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "expect.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/plan/checkpoints.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {
namespace {

using testing::succeeds;

/// A dense block and two with experts, of latent attention.
model::TrainingJob job_of(const std::string& more, const std::string& least = "1") {
  auto graph = architectures::read_config(
      R"({"num_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 128, "ffn_hidden_size": 128,
          "multi_latent_attention": true, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_head_dim": 8,
          "qk_pos_emb_head_dim": 4, "v_head_dim": 8, "normalization": "RMSNorm", "position_embedding_type": "rope",
          "swiglu": true, "add_bias_linear": false, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 32,
          "moe_layer_freq": "[0]*1+[1]*2", "moe_grouped_gemm": true, "min_offloaded_tensor_size": )" +
          least + more + "}",
      ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job(*std::move(graph), 2);
  job.sequence_length = 32;
  job.precision = model::Precision::bf16_mixed;
  job.loop = model::Loop::megatron;
  job.fused = true;
  return job;
}

model::TrainingJob recomputed(const std::string& modules, const std::string& more = "") {
  model::TrainingJob job = job_of(more);
  job.activation_checkpointing = true;
  job.checkpoints = {model::Checkpoints::selective_modules, 0, modules};
  return job;
}

/// What a step holds when its backward begins.
std::int64_t kept_by(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  EXPECT_TRUE(succeeds(steps));
  if (!steps) return 0;
  const StepPlan& plan = **steps;
  std::vector<std::int64_t> slots(plan.slots, 0);
  std::int64_t now = 0;
  std::size_t mark = 0;
  for (std::size_t at = 0; at < plan.events.size(); ++at) {
    for (; mark < plan.phases.size() && plan.phases[mark].first_event <= at; ++mark) {
      if (plan.phases[mark].phase == Phase::backward) return now;
    }
    const Event& event = plan.events[at];
    if (event.kind == Event::Kind::allocate) now += slots[event.slot] = event.bytes;
    if (event.kind == Event::Kind::release) now -= slots[event.slot];
  }
  return now;
}

constexpr std::int64_t kTokens = 2 * 32;
constexpr std::int64_t kHidden = kTokens * 64 * 2;

TEST(SavedTensors, MegatronsNormsInFrontOfLatentAttentionAndExpertsAreDiscarded) {
  // Three norms in front of attention, and two in front of experts; that of a dense block is in its product.
  EXPECT_EQ(kept_by(job_of("")) - kept_by(recomputed("layernorm")), 5 * kHidden);
}

TEST(SavedTensors, WhatLatentAttentionMakesOfItsNarrowVectorsIsDiscarded) {
  // Of each block: both normed vectors, queries and keys (8 + 4 a head), values (8). What is normed stays.
  const std::int64_t block = kTokens * (24 + 16 + 4 * (12 + 12 + 8)) * 2;
  const std::int64_t less = kept_by(job_of("")) - kept_by(recomputed("mla_up_proj"));
  EXPECT_GE(less, 3 * block);
  EXPECT_LE(less, 3 * (block + kTokens * 4 * 8 * 2)) << "values may be kept with what they are cut of";
}

TEST(SavedTensors, MlpIsTheDenseOnesAndMoeTheOthers) {
  const auto parts_of = [](const std::string& modules) {
    const model::TrainingJob job = recomputed(modules);
    analysis::Analysis analysis(job);
    const auto pass = analysis.forward_pass();
    EXPECT_TRUE(succeeds(pass));
    const auto parts = recomputed_parts(**pass, job);
    EXPECT_TRUE(succeeds(parts));
    return parts->size();
  };
  EXPECT_EQ(parts_of("mlp"), 1U);
  EXPECT_EQ(parts_of("moe"), 2U);
  EXPECT_EQ(parts_of("core_attn"), 3U);
  EXPECT_EQ(parts_of("layernorm"), 0U);
  EXPECT_EQ(parts_of("mlp+moe+layernorm"), 3U);
  EXPECT_EQ(parts_of("shared_experts"), 0U) << "this model has none";
  const model::TrainingJob other = recomputed("mlp+nothing");
  analysis::Analysis analysis(other);
  EXPECT_TRUE(testing::fails(analysis.steps(), core::ErrorCode::missing_information, 0, "'nothing'"));
}

/// Megatron leaves the last block's groups on the GPU, and fetches those of one block ahead.
TEST(SavedTensors, OffloadedModulesKeepWhatOneBlockKeeps) {
  const std::int64_t all = kept_by(job_of(""));
  const auto with = [&](const std::string& modules) {
    model::TrainingJob job = job_of(R"(, "offload_modules": ")" + modules + "\"");
    job.offload = model::Offload::activations;
    return all - kept_by(job);
  };
  EXPECT_EQ(with("[attn_proj]"), -kTokens * 4 * 8 * 2)
      << "attention keeps what it reads: Megatron wants both offloaded";
  EXPECT_EQ(with("[expert_fc1]"), 0) << "of two blocks with experts one's stay, and the other's are fetched ahead";
  EXPECT_EQ(with("[moe_act]"), 0);
  const std::int64_t attention = with("[core_attn]");
  EXPECT_GT(attention, 0);
  EXPECT_GT(with("[core_attn attn_proj]"), attention);
  EXPECT_GT(with("core_attn,attn_proj"), attention) << "lists are written in several ways";
}

TEST(SavedTensors, ModulesThatMegatronDoesNotOffloadAreRefused) {
  const auto graph = architectures::read_config(
      R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 128,
          "max_position_embeddings": 32, "offload_modules": "[core_attn mlp]"})",
      ops::vocabulary());
  EXPECT_TRUE(testing::fails(graph, core::ErrorCode::malformed_input, 0, "'mlp'"));
}

TEST(SavedTensors, SmallTensorsStay) {
  model::TrainingJob job = job_of(R"(, "offload_modules": "[core_attn]")", "1000000");
  job.offload = model::Offload::activations;
  EXPECT_EQ(kept_by(job), kept_by(job_of("")));
}

TEST(SavedTensors, AnActivationThatRunsAgainWaitsForItsInputOnTheHost) {
  const std::int64_t again = kept_by(recomputed("moe_act"));
  model::TrainingJob both = recomputed("moe_act", R"(, "offload_modules": "[moe_act]")");
  both.offload = model::Offload::activations;
  EXPECT_LT(kept_by(both), again);
}

TEST(SavedTensors, NamesAreJoinedByPlus) {
  EXPECT_EQ(joined_names("a+b").size(), 2U);
  EXPECT_TRUE(joined_names("").empty());
}

}  // namespace
}  // namespace gpumem::plan
