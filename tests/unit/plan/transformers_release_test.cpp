// What a release of transformers keeps of attention: copies and repeated heads until 4.55, views from 4.56 on; masks of
// booleans from then on, of which each call makes numbers; no cache under the Trainer of 5.0.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "expect.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/architectures/architectures.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "plans.hpp"

namespace gpumem::plan {
namespace {

using model::Transformers;
using testing::forward;
using testing::succeeds;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kHalf = 2;  // bytes of bfloat16

struct Asked {
  Transformers release = Transformers::v4_52;
  std::int64_t kv_heads = 2;
  std::int64_t head_width = 16;
  bool caches = false;
  bool padding = false;
  model::Precision precision = model::Precision::bf16;
  model::AttentionBackend attention = model::AttentionBackend::sdpa;
  model::Loop loop = model::Loop::script;
};

model::TrainingJob llama(const Asked& asked, std::int64_t layers) {
  auto graph = architectures::read_config(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
          "vocab_size": 8192, "num_attention_heads": 4, "num_key_value_heads": )" +
          std::to_string(asked.kv_heads) + R"(, "head_dim": )" + std::to_string(asked.head_width) +
          R"(, "num_hidden_layers": )" + std::to_string(layers) + R"(, "use_cache": )" +
          (asked.caches ? "true" : "false") + "}",
      ops::vocabulary());
  EXPECT_TRUE(succeeds(graph));
  model::TrainingJob job(*std::move(graph), kBatch);
  job.sequence_length = kTokens;
  job.optimizer = model::Optimizer::sgd;
  job.transformers = asked.release;
  job.padding = asked.padding;
  job.precision = asked.precision;
  job.attention = asked.attention;
  job.loop = asked.loop;
  return job;
}

std::int64_t peak(const Asked& asked, std::int64_t layers) {
  const model::TrainingJob job = llama(asked, layers);
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  EXPECT_TRUE(succeeds(steps));
  return steps ? (*steps)->peak_bytes : 0;
}

/// What one layer adds to the peak, which is at the loss: its weights, and what it keeps for backward.
std::int64_t of_layer(const Asked& asked) { return peak(asked, 4) - peak(asked, 3); }

/// Bytes of this many heads of all tokens.
std::int64_t heads(std::int64_t count, std::int64_t width) { return kBatch * kTokens * count * width * kHalf; }

TEST(TransformersRelease, ViewsGoToTheKernelFrom456On) {
  for (const Transformers release : {Transformers::v4_56, Transformers::v5_0}) {
    Asked asked{.kv_heads = kHeads};
    const std::int64_t copied = of_layer(asked);
    asked.release = release;
    EXPECT_EQ(copied - of_layer(asked), heads(kHeads, 16)) << "the output is not copied any more";
  }
}

TEST(TransformersRelease, TheKernelReadsFewerHeadsAsTheyAre) {
  Asked asked;
  const std::int64_t repeated = of_layer(asked);
  asked.release = Transformers::v5_0;
  // Before: keys and values of all heads, and the output's copy.
  EXPECT_EQ(repeated - of_layer(asked), heads(3 * kHeads, 16) - heads(2 * asked.kv_heads, 16));
}

TEST(TransformersRelease, HeadsThatFlashAttentionDoesNotTakeAreRepeated) {
  Asked asked{.head_width = 512};
  const std::int64_t repeated = of_layer(asked);
  asked.release = Transformers::v5_0;
  EXPECT_EQ(repeated - of_layer(asked), heads(kHeads, 512));
}

TEST(TransformersRelease, WithoutFlashAttentionFewerHeadsAreWrittenOut) {
  Asked asked{.precision = model::Precision::fp32};
  const std::int64_t fused = of_layer(asked);
  asked.release = Transformers::v5_0;
  const std::int64_t scores = kBatch * kHeads * kTokens * kTokens * 4;
  EXPECT_GT(of_layer(asked), fused + scores / 2) << "the scores' softmax is kept";
  asked.kv_heads = kHeads;
  EXPECT_LT(of_layer(asked), fused + scores / 2) << "as many keys as queries need not be repeated";
}

TEST(TransformersRelease, EachCallMakesNumbersOfAMaskOfBooleans) {
  Asked asked{.padding = true};
  const std::int64_t shared = of_layer(asked);
  asked.release = Transformers::v5_0;
  EXPECT_EQ(of_layer(asked) - shared, kBatch * kTokens * kTokens * kHalf);
}

TEST(TransformersRelease, AttentionThatIsWrittenOutIsTheSameInAll) {
  Asked asked{.attention = model::AttentionBackend::eager};
  const std::int64_t before = of_layer(asked);
  asked.release = Transformers::v5_0;
  EXPECT_EQ(of_layer(asked), before);
}

TEST(TransformersRelease, ACacheIsMadeUnlessTheConfigOrTheTrainerSaysNo) {
  Asked asked{.release = Transformers::v4_52, .caches = true};
  const Asked none{.release = Transformers::v4_52};
  EXPECT_GT(of_layer(asked), of_layer(none));
  const auto held = [&](Transformers release) {
    asked.release = release;
    const auto pass = forward(llama(asked, 2));
    EXPECT_TRUE(succeeds(pass));
    return pass ? held_by_loop(llama(asked, 2), *pass).size() : 0;
  };
  asked.loop = model::Loop::hf_trainer;
  const std::size_t caches = 2 * 2;  // keys and values of two layers
  EXPECT_EQ(held(Transformers::v4_56), held(Transformers::v5_0) + caches);
}

TEST(TransformersRelease, ExpertsGetTheirTokensInOneCopyFrom55On) {
  auto read = architectures::read_config(
      R"({"model_type": "minimax_m2", "architectures": ["MiniMaxM2ForCausalLM"], "hidden_size": 64, "head_dim": 16,
          "intermediate_size": 32, "vocab_size": 512, "num_attention_heads": 4, "num_key_value_heads": 4,
          "num_hidden_layers": 1, "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 16})",
      ops::vocabulary());
  ASSERT_TRUE(succeeds(read));
  const auto graph = std::make_shared<const model::ModelGraph>(*std::move(read));
  const auto calls = [&](Transformers release, std::string_view op) {
    model::TrainingJob job(graph, kBatch);
    job.sequence_length = kTokens;
    job.transformers = release;
    analysis::Analysis analysis(job);
    const auto wired = analysis.wired();
    EXPECT_TRUE(succeeds(wired));
    const auto layers = (*wired)->graph().layers();
    return std::count_if(layers.begin(), layers.end(),
                         [&](const model::Layer& layer) { return (*wired)->graph().op(layer) == op; });
  };
  EXPECT_EQ(calls(Transformers::v5_0, "ordered_rows"), 3) << "tokens, their weights and what the experts made";
  EXPECT_EQ(calls(Transformers::v5_5, "ordered_rows"), 2);
  EXPECT_EQ(calls(Transformers::v4_56, "kept_rows"), 1) << "index_add_ keeps what it adds";
  EXPECT_EQ(calls(Transformers::v5_0, "kept_rows"), 0);
}

/// GLM-5, small, with one layer whose indexer has scores of 4 heads.
std::shared_ptr<const model::ModelGraph> glm_5(std::int64_t layers = 1) {
  auto read = architectures::read_config(
      R"({"model_type": "glm_moe_dsa", "architectures": ["GlmMoeDsaForCausalLM"], "hidden_size": 64,
          "intermediate_size": 64, "vocab_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4,
          "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 32,
          "index_n_heads": 4, "index_head_dim": 32, "index_topk": 8, "first_k_dense_replace": 8, "n_routed_experts": 4,
          "num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_hidden_layers": )" +
          std::to_string(layers) + "}",
      ops::vocabulary());
  EXPECT_TRUE(succeeds(read));
  return std::make_shared<const model::ModelGraph>(*std::move(read));
}

std::int64_t peak_of(const model::TrainingJob& job) {
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  EXPECT_TRUE(succeeds(steps));
  return steps ? (*steps)->peak_bytes : 0;
}

TEST(TransformersRelease, AnIndexersKeysAreCopiedForEachQueryFrom511OnInBatchesOfSeveral) {
  model::TrainingJob job(glm_5(), kBatch);
  job.sequence_length = 1024;
  job.optimizer = model::Optimizer::sgd;
  const auto with = [&](Transformers release, std::int64_t batch) {
    job.transformers = release;
    job.batch_size = batch;
    return peak_of(job);
  };
  const std::int64_t scores = kBatch * 1024 * 4 * 1024 * 4;
  const std::int64_t copies = kBatch * 1024 * 32 * 1024 * 4;  // of one key's 32 elements, in float32
  EXPECT_EQ(with(Transformers::v5_11, 1), with(Transformers::v5_5, 1)) << "an axis behind one of 1 is seen, not copied";
  const std::int64_t more = with(Transformers::v5_11, kBatch) - with(Transformers::v5_5, kBatch);
  EXPECT_GT(more, copies - 2 * scores);
  EXPECT_LT(more, copies);
}

TEST(TransformersRelease, AnIndexersAdaptersKeepNothing) {
  model::TrainingJob job(glm_5(), kBatch);
  job.sequence_length = kTokens;
  job.lora = 4;
  job.transformers = Transformers::v5_11;
  job.lora_targets = "wq_b+wk+weights_proj";
  analysis::Analysis analysis(job);
  EXPECT_TRUE(testing::fails(analysis.forward_pass(), core::ErrorCode::missing_information, 0, "nothing to train"))
      << "it runs under torch.no_grad()";
}

TEST(TransformersRelease, MaskedAttentionOnHopperIsCudnnsAndLiesAsItsQuery) {
  model::TrainingJob job(glm_5(4), kBatch);
  job.sequence_length = kTokens;
  job.transformers = Transformers::v5_11;
  job.precision = model::Precision::bf16;
  analysis::Analysis analysis(job);
  const auto peak_on = [&](std::string_view capability) {
    device::GpuProfile gpu;
    gpu.compute_capability = capability;
    static_cast<void>(analysis.choose_for(gpu));
    const auto steps = analysis.steps();
    EXPECT_TRUE(succeeds(steps));
    return steps ? (*steps)->peak_bytes : 0;
  };
  const std::int64_t output = kBatch * kTokens * kHeads * 32 * kHalf;
  const std::int64_t ampere = peak_on("8.0");
  EXPECT_EQ(peak_on("9.0"), ampere + 3 * output)
      << "each layer copies it into order and keeps both, until its backward";
  EXPECT_EQ(peak_on("8.0"), ampere);
}

}  // namespace
}  // namespace gpumem::plan
