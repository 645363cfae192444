// Kinds of models and of servers beside decoders: encoders and poolers, attention in chunks, indexers, drafts, images.
#include <gtest/gtest.h>

#include <memory>

#include "gpumem/serve/serving_questions.hpp"

namespace gpumem::serve {
namespace {

constexpr const char* kBert = R"({"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 768,
  "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512,
  "vocab_size": 30522, "type_vocab_size": 2})";
constexpr const char* kQwen = R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024,
  "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
  "intermediate_size": 3072, "max_position_embeddings": 32768, "vocab_size": 151936, "tie_word_embeddings": false})";
constexpr const char* kSparse = R"({"model_type": "deepseek_v32", "hidden_size": 1024, "num_hidden_layers": 8,
  "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 4096, "moe_intermediate_size": 512,
  "n_routed_experts": 16, "n_shared_experts": 1, "num_experts_per_tok": 4, "first_k_dense_replace": 1,
  "kv_lora_rank": 512, "q_lora_rank": 768, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
  "index_head_dim": 128, "index_n_heads": 8, "index_topk": 1024, "max_position_embeddings": 16384,
  "vocab_size": 32000, "n_group": 4, "topk_group": 2, "num_nextn_predict_layers": 1})";
constexpr const char* kChunked = R"({"model_type": "llama4_text", "hidden_size": 2048, "num_hidden_layers": 8,
  "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 4096,
  "intermediate_size_mlp": 8192, "num_local_experts": 4, "num_experts_per_tok": 1, "attention_chunk_size": 8192,
  "max_position_embeddings": 131072, "vocab_size": 32000})";

core::Result<ServingEstimate> started(const char* config, const ServingJob& job) {
  const core::Result<ServedModel> model = read_served_model(config);
  if (!model) return model.error();
  const core::Result<device::GpuProfile> gpu = device::find_profile("h100-80gb");
  if (!gpu) return gpu.error();
  return estimate_vllm(*model, job, *gpu);
}

std::string with_class(std::string config, const std::string& name) {
  const std::size_t at = config.find("Qwen3ForCausalLM");
  return config.replace(at, std::string("Qwen3ForCausalLM").size(), name);
}

TEST(VllmKinds, EncoderKeepsNoCacheAndHasNoPooler) {
  const auto start = started(kBert, {});
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(start->starts) << start->reason;
  EXPECT_FALSE(start->caches);
  EXPECT_EQ(start->kv_cache.count(), 0);
  // A padded vocabulary, positions, kinds of tokens, a norm, and twelve layers of 7,087,872 parameters, in 16 bits.
  const std::int64_t layers = std::int64_t{12} * 7'087'872;
  EXPECT_EQ(start->weights.count(), 2 * (std::int64_t{30528} * 768 + std::int64_t{512 + 2 + 2} * 768 + layers));
  // It takes what it needs, not its share of the GPU.
  EXPECT_EQ(start->requested.count(),
            start->weights.count() + start->activation.count() + start->outside_pytorch.count());
  EXPECT_DOUBLE_EQ(start->concurrency, 16.0);
}

TEST(VllmKinds, EncoderReadsEachTextInOneStep) {
  ServingJob job;
  job.max_num_batched_tokens = 256;
  job.max_num_seqs = 16;
  const auto start = started(kBert, job);
  ASSERT_FALSE(start);
  EXPECT_NE(start.error().message.find("max_num_batched_tokens"), std::string::npos) << start.error().message;
}

TEST(VllmKinds, PoolingTakesTheOutputLayerAndTheSamplerAway) {
  const auto generates = started(kQwen, {});
  ServingJob job;
  job.runner = "pooling";
  const auto embeds = started(kQwen, job);
  ASSERT_TRUE(generates && embeds);
  EXPECT_EQ(generates->weights.count() - embeds->weights.count(), std::int64_t{2} * 151936 * 1024);
  EXPECT_LT(embeds->activation.count(), generates->activation.count());
  EXPECT_TRUE(embeds->caches);
  EXPECT_GT(embeds->kv_cache_tokens, generates->kv_cache_tokens);
}

TEST(VllmKinds, ClassSaysWhatTheModelDoes) {
  for (const char* const name : {"Qwen3ForSequenceClassification", "Qwen3Model", "Qwen3ForRewardModel"}) {
    const auto model = read_served_model(with_class(kQwen, name));
    ASSERT_TRUE(model) << name << ": " << model.error().message;
    EXPECT_TRUE(model->pools) << name;
    EXPECT_EQ(model->weights.tables, 1) << name;
  }
  const auto generates = read_served_model(kQwen);
  ASSERT_TRUE(generates);
  EXPECT_FALSE(generates->pools);
  ServingJob job;
  job.runner = "generate";
  const auto start = started(kBert, job);
  ASSERT_FALSE(start);
  EXPECT_NE(start.error().message.find("runner"), std::string::npos);
}

TEST(VllmKinds, ChunkedLayersKeepAllTokens) {
  ServingJob job;
  job.max_model_len = 65536;
  const auto start = started(kChunked, job);
  ASSERT_TRUE(start) << start.error().message;
  // 8 layers, keys and values of 4 heads of 128 elements in 16 bits: 16 KiB a token.
  EXPECT_EQ(start->kv_cache_tokens, start->kv_cache.count() / (16 * 16384) * 16);
}

TEST(VllmKinds, IndexerHasACacheOfItsOwn) {
  const auto plain = started(kSparse, {});
  ServingJob job;
  job.kv_cache_dtype = "fp8";
  const auto eight_bits = started(kSparse, job);
  ASSERT_TRUE(plain && eight_bits) << plain.error().message;
  const auto token = [](const ServingEstimate& of) { return of.kv_cache.count() / of.kv_cache_blocks / 64 / 8; };
  EXPECT_EQ(token(*plain), 576 * 2 + 132);
  EXPECT_EQ(token(*eight_bits), 656 + 132);
}

TEST(VllmKinds, WordsOfTheRequestAreDraftedForNothing) {
  ServingJob job;
  job.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 3})";
  const auto plain = started(kQwen, {});
  const auto drafts = started(kQwen, job);
  ASSERT_TRUE(plain && drafts) << drafts.error().message;
  EXPECT_EQ(drafts->weights.count(), plain->weights.count());
  // What checks the drafts holds two more logits of each sequence.
  EXPECT_EQ(drafts->activation.count() - plain->activation.count(), std::int64_t{2} * 2 * 1024 * 151936);
}

TEST(VllmKinds, NextTokensTakeOneMoreLayer) {
  ServingJob job;
  job.speculative_config = R"({"method": "deepseek_mtp", "num_speculative_tokens": 1})";
  const auto plain = started(kSparse, {});
  const auto drafts = started(kSparse, job);
  ASSERT_TRUE(plain && drafts) << drafts.error().message;
  EXPECT_EQ(drafts->draft.count(), drafts->weights.count() - plain->weights.count());
  EXPECT_GT(drafts->draft.count(), std::int64_t{2} * 2 * 1024 * 1024);
  // Nine layers in the cache instead of eight.
  EXPECT_NEAR(static_cast<double>(drafts->kv_cache.count()) / static_cast<double>(drafts->kv_cache_blocks),
              9.0 / 8.0 * static_cast<double>(plain->kv_cache.count()) / static_cast<double>(plain->kv_cache_blocks),
              64.0);
}

TEST(VllmKinds, DraftOfItsOwnHasWeightsAndCache) {
  ServingJob job;
  job.speculative_config = R"({"model": "small", "num_speculative_tokens": 3})";
  const auto unread = started(kQwen, job);
  ASSERT_FALSE(unread);
  EXPECT_NE(unread.error().message.find("small"), std::string::npos) << unread.error().message;
  const auto draft = read_served_model(kQwen);
  ASSERT_TRUE(draft);
  job.draft = std::make_shared<const ServedModel>(*draft);
  const auto plain = started(kQwen, {});
  const auto drafts = started(kQwen, job);
  ASSERT_TRUE(plain && drafts) << drafts.error().message;
  EXPECT_EQ(drafts->draft.count(), plain->weights.count());
  job.speculative_config = R"({"method": "eagle", "model": "small"})";
  const auto eagle = started(kQwen, job);
  ASSERT_TRUE(eagle) << eagle.error().message;
  EXPECT_EQ(drafts->draft.count() - eagle->draft.count(),
            std::int64_t{2} * (2 * 151936 * std::int64_t{1024}) - std::int64_t{2} * 2 * 1024 * 1024);
}

TEST(VllmKinds, VerdictOfAGivenCacheAsksWhatElseIsFree) {
  ServingJob job;
  job.max_model_len = 8192;
  job.kv_cache_memory_bytes = std::int64_t{1} << 30;
  const auto start = started(kQwen, job);
  ASSERT_TRUE(start) << start.error().message;
  // One request fills most of the cache, and nearly all of the GPU is free beside it.
  EXPECT_LT(start->kv_cache.count() - start->kv_cache_needed.count(), std::int64_t{200} << 20);
  EXPECT_EQ(start->verdict(), estimate::Verdict::fits);
}

}  // namespace
}  // namespace gpumem::serve
