#include "gpumem/plan/forward_pass.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using core::ErrorCode;
using testing::count;
using testing::events;
using testing::fails;
using testing::forward;
using testing::planned;
using testing::succeeds;

/// A block of four query heads that share one head of keys and values.
TrainingJob llama(model::AttentionBackend attention) {
  const auto graph = parse_summary(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 1, "vocab_size": 100})");
  EXPECT_TRUE(succeeds(graph));
  TrainingJob job(*graph, 2);
  job.sequence_length = 128;
  job.precision = Precision::bf16;
  job.optimizer = Optimizer::sgd;
  job.attention = attention;
  return job;
}

/// Bytes of the scores of all heads, an element each.
constexpr std::int64_t kScores = std::int64_t{2} * 4 * 128 * 128;

std::int64_t allocations_of(const TrainingJob& job, std::int64_t bytes) {
  std::int64_t found = 0;
  for (const Event& event : planned(job).plan.events) {
    if (event.kind == Event::Kind::allocate && event.bytes == bytes) ++found;
  }
  return found;
}

TEST(AttentionInputs, AreWhatRepeatsAndCopiesForTheAttentionAlone) {
  const TrainingJob job = llama(model::AttentionBackend::flash);
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  const std::vector<bool> moved = attention_inputs(*wired);
  std::size_t expands = 0;
  for (std::size_t index = 0; index < moved.size(); ++index) {
    const auto& layer = job.graph->layers()[index];
    if (job.graph->op(layer) == "expand" && moved[index]) ++expands;
    if (moved[index]) {
      EXPECT_EQ(layer.parameters, 0);
    }
  }
  EXPECT_EQ(expands, 2U) << "of keys and of values";
}

TEST(AttentionInputs, FlashAttentionRepeatsNoHeads) {
  const auto sdpa = planned(llama(model::AttentionBackend::sdpa)).plan;
  const auto flash = planned(llama(model::AttentionBackend::flash)).plan;
  EXPECT_LT(flash.peak_bytes, sdpa.peak_bytes);
  EXPECT_EQ(allocations_of(llama(model::AttentionBackend::flash), kScores * 4), 0) << "no scores";
}

TEST(AttentionInputs, EagerAttentionMakesScoresInBothTypes) {
  const TrainingJob eager = llama(model::AttentionBackend::eager);
  EXPECT_GT(allocations_of(eager, kScores * 4), 0) << "the softmax in float32";
  EXPECT_GT(allocations_of(eager, kScores * 2), 0) << "scores, and weights";
  EXPECT_EQ(allocations_of(llama(model::AttentionBackend::sdpa), kScores * 4), 0);
}

TEST(AttentionInputs, FlashAttentionTakesTypesOfTwoBytes) {
  TrainingJob job = llama(model::AttentionBackend::flash);
  job.precision = Precision::fp32;
  EXPECT_TRUE(fails(forward(job), ErrorCode::invalid_argument, 0, "flash attention takes float16 and bfloat16"));
}

}  // namespace
}  // namespace gpumem::plan
