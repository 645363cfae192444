#include "gpumem/serve/serving_questions.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "gpumem/core/file.hpp"
#include "recent_models.hpp"

namespace gpumem::serve {
namespace {

constexpr const char* kLlama8b = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
  "max_position_embeddings": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
constexpr const char* kGemma27b = R"({"model_type": "gemma2", "hidden_size": 4608, "intermediate_size": 36864,
  "num_hidden_layers": 46, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
  "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096, "torch_dtype": "bfloat16"})";

double gib(core::Bytes bytes) { return static_cast<double>(bytes.count()) / (1024.0 * 1024.0 * 1024.0); }

ServingJob logged_job() {
  ServingJob job;
  job.version = "0.19.0";
  job.max_model_len = 8192;
  job.gpu_memory_utilization = 0.95;
  return job;
}

core::Result<ServingEstimate> started(const char* config, const ServingJob& job) {
  const core::Result<ServedModel> model = read_served_model(config);
  if (!model) return model.error();
  const core::Result<device::GpuProfile> gpu = device::find_profile("h100-80gb");
  if (!gpu) return gpu.error();
  return estimate_vllm(*model, job, *gpu);
}

// What vLLM 0.19.0 logged on H100-80GB: 14.99, 1.89 and 58.11 GiB, 476,016 tokens.
TEST(Vllm, StartOfADenseModelIsAsLogged) {
  const auto start = started(kLlama8b, logged_job());
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(start->starts) << start->reason;
  EXPECT_NEAR(gib(start->weights), 14.99, 0.02);
  EXPECT_NEAR(gib(start->activation), 1.89, 0.04);
  EXPECT_NEAR(static_cast<double>(start->kv_cache_tokens), 476016.0, 2400.0);
  EXPECT_NEAR(start->concurrency, 58.11, 0.3);
}

// Logged: 7,335 blocks of 23 layers, 58,672 tokens, 7.16 requests.
TEST(Vllm, LayersWithAWindowShareBlocksWithTheOthers) {
  const auto start = started(kGemma27b, logged_job());
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_NEAR(static_cast<double>(start->kv_cache_blocks), 7335.0, 73.0);
  EXPECT_NEAR(static_cast<double>(start->kv_cache_tokens), 58672.0, 590.0);
  EXPECT_NEAR(start->concurrency, 7.16, 0.07);
}

TEST(Vllm, KvHeadsAreReplicatedWhenThereAreMoreRanks) {
  ServingJob job = logged_job();
  job.tensor_parallel = 8;
  const auto eight = started(kLlama8b, job);
  job.tensor_parallel = 16;
  const auto sixteen = started(kLlama8b, job);
  ASSERT_TRUE(eight && sixteen);
  EXPECT_LT(sixteen->weights.count(), eight->weights.count());
  EXPECT_GT(2 * sixteen->weights.count(), eight->weights.count());
  // One KV head a rank in both: the same bytes a token.
  EXPECT_EQ(eight->kv_cache.count() / eight->kv_cache_blocks, sixteen->kv_cache.count() / sixteen->kv_cache_blocks);
}

TEST(Vllm, CacheThatIsTooSmallNamesTheLongestRequest) {
  ServingJob job = logged_job();
  job.max_model_len = 131072;
  job.gpu_memory_utilization = 0.35;
  const auto start = started(kLlama8b, job);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_FALSE(start->starts);
  EXPECT_NE(start->reason.find(std::to_string(start->largest_max_model_len)), std::string::npos) << start->reason;
  job.max_model_len = start->largest_max_model_len;
  EXPECT_TRUE(started(kLlama8b, job)->starts);
  job.max_model_len = start->largest_max_model_len + 16;
  EXPECT_FALSE(started(kLlama8b, job)->starts);
  job.gpu_memory_utilization = 0.2;
  EXPECT_NE(started(kLlama8b, job)->reason.find("no memory is left"), std::string::npos);
}

constexpr const char* kMixtral = R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
  "max_position_embeddings": 32768, "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16"})";
constexpr const char* kDeepseekV2Lite = R"({"model_type": "deepseek_v2", "hidden_size": 2048,
  "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
  "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
  "first_k_dense_replace": 1, "vocab_size": 102400, "max_position_embeddings": 163840, "tie_word_embeddings": false})";

// Logged: 43.51 and 1.21 GiB, 465,936 tokens on two GPUs; 29.43 and 1.93 GiB, 1,505,552 tokens on one.
TEST(Vllm, ExpertsKeepTheirWorkAreasAndALatentCacheIsNarrow) {
  ServingJob job = logged_job();
  const auto latent = started(kDeepseekV2Lite, job);
  ASSERT_TRUE(latent) << latent.error().message;
  EXPECT_NEAR(gib(latent->weights), 29.43, 0.15);
  EXPECT_NEAR(gib(latent->activation), 1.93, 0.02);
  EXPECT_NEAR(static_cast<double>(latent->kv_cache_tokens), 1505552.0, 15000.0);
  job.tensor_parallel = 2;
  const auto experts = started(kMixtral, job);
  ASSERT_TRUE(experts) << experts.error().message;
  EXPECT_NEAR(gib(experts->weights), 43.51, 0.05);
  EXPECT_NEAR(gib(experts->activation), 1.21, 0.02);
  EXPECT_NEAR(static_cast<double>(experts->kv_cache_tokens), 465936.0, 4700.0);
}

// Logged: 1,075,312 tokens with two stages, 2,257,264 with four.
TEST(Vllm, TheStageWithTheLeastRoomDecides) {
  ServingJob job = logged_job();
  job.pipeline_parallel = 2;
  const auto two = started(kLlama8b, job);
  job.pipeline_parallel = 4;
  const auto four = started(kLlama8b, job);
  ASSERT_TRUE(two && four);
  EXPECT_NEAR(gib(two->weights), 7.51, 0.02);
  EXPECT_EQ(two->stage, 1);
  EXPECT_NEAR(static_cast<double>(two->kv_cache_tokens), 1075312.0, 5400.0);
  EXPECT_NEAR(static_cast<double>(four->kv_cache_tokens), 2257264.0, 11000.0);
  job.pipeline_parallel = 33;
  EXPECT_FALSE(started(kLlama8b, job));
}

// Logged with versions up to 0.16: 4.76 GiB.
TEST(Vllm, OlderVersionsSortTheLogits) {
  ServingJob job = logged_job();
  job.version = "v0.16.0";
  const auto start = started(kLlama8b, job);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_NEAR(gib(start->activation), 4.76, 0.05);
}

TEST(Vllm, QuantisedWeightsAreAsWideAsTheConfigSays) {
  std::string config = kLlama8b;
  const auto with = [&](const std::string& quantization) {
    return config.substr(0, config.rfind('}')) + R"(, "quantization_config": )" + quantization + "}";
  };
  const auto plain = started(kLlama8b, logged_job());
  const auto eight = started(with(R"({"quant_method": "fp8"})").c_str(), logged_job());
  const auto four = started(with(R"({"quant_method": "awq", "bits": 4, "group_size": 128})").c_str(), logged_job());
  ASSERT_TRUE(plain && eight && four);
  EXPECT_NEAR(gib(eight->weights), 8.49, 0.02);  // as logged
  // 6.98 of 8.03 billion parameters are in linear layers, of 4.125 bits.
  EXPECT_NEAR(gib(plain->weights) - gib(four->weights), 6.98e9 * (16 - 4.125) / 8 / (1024.0 * 1024.0 * 1024.0), 0.05);
  EXPECT_EQ(read_served_model(with(R"({"quant_method": "bitsandbytes"})")).error().code,
            core::ErrorCode::unknown_format);
  const auto silent = started(with(R"({"quant_method": "compressed-tensors"})").c_str(), logged_job());
  ASSERT_TRUE(silent);
  EXPECT_NE(silent->assumed.back().find("8 were taken"), std::string::npos) << silent->assumed.back();
}

TEST(Vllm, ATightStartIsSaid) {
  ServingJob job = logged_job();
  EXPECT_EQ(started(kLlama8b, job)->verdict(), estimate::Verdict::fits);
  // One request of so many tokens needs what is left, but for a tenth of a GiB.
  const std::string longer = std::string(kLlama8b).replace(std::string(kLlama8b).find("131072"), 6, "999999");
  job.max_model_len = started(longer.c_str(), job)->kv_cache_tokens - 800;
  const auto start = started(longer.c_str(), job);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(start->starts) << start->reason;
  EXPECT_EQ(start->verdict(), estimate::Verdict::tight);
}

TEST(Vllm, WhatItHasNoClassOfIsNotServed) {
  const auto encoder = read_served_model(
      R"({"model_type": "electra", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
          "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})");
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().code, core::ErrorCode::unknown_format);
  const auto hybrid = read_served_model(
      R"({"model_type": "lfm2", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
      "intermediate_size": 1024, "vocab_size": 1000, "full_attn_idxs": [2], "max_position_embeddings": 512})");
  ASSERT_FALSE(hybrid) << "its convolutions hold states besides the keys and values of one layer";
  EXPECT_EQ(hybrid.error().code, core::ErrorCode::unknown_format);
  EXPECT_NE(hybrid.error().message.find("state"), std::string::npos);
}

TEST(Vllm, CachesAndLayersWithoutRulesAreRefused) {
  const auto refusal = [](std::string_view config) {
    const auto model = read_served_model(config);
    EXPECT_FALSE(model);
    return model ? std::string() : model.error().message;
  };
  const auto published = [&](std::string_view name) {
    for (const testing::Published& each : testing::all_published()) {
      if (each.name == name) return refusal(each.config);
    }
    return std::string();
  };
  EXPECT_NE(published("mimo-v2-flash").find("window"), std::string::npos);
  EXPECT_NE(published("nemotron-super-49b").find("differ"), std::string::npos);
}

TEST(Vllm, UnknownIsSaid) {
  ServingJob job = logged_job();
  for (const char* version : {"0.8.5", "0", "zero", "0.x"}) {
    job.version = version;
    EXPECT_FALSE(started(kLlama8b, job)) << version;
  }
  job.version = "0.99.0";
  ASSERT_TRUE(started(kLlama8b, job));
  EXPECT_NE(started(kLlama8b, job)->assumed.front().find("newer"), std::string::npos);
  EXPECT_EQ(read_served_model(R"({"model_type": "unheard"})").error().code, core::ErrorCode::missing_information);
  EXPECT_EQ(read_served_model(R"({"model_type": "llama"})").error().code, core::ErrorCode::missing_information);
  EXPECT_FALSE(read_served_model("[]"));
  job.tensor_parallel = 3;
  EXPECT_FALSE(started(kLlama8b, job));
}

TEST(Vllm, MoreTokensThanFitANumberAreAnError) {
  ServingJob job = logged_job();
  job.max_num_batched_tokens = std::numeric_limits<std::int64_t>::max();
  job.max_num_seqs = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(started(kLlama8b, job));
}

/// Mistral Small 3.1, and Qwen3.5-9B without its tower: their published sizes.
constexpr const char* kMistral24b = R"({"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"],
  "text_config": {"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
  "max_position_embeddings": 131072, "tie_word_embeddings": false}, "vision_config": {"model_type": "pixtral",
  "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "head_dim": 64,
  "patch_size": 14, "image_size": 1540}, "spatial_merge_size": 2})";

// The log: 44.76 GiB of weights, 2 images in the profiling pass, 2.03 GiB above the weights, 184,752 tokens.
TEST(Vllm, TheProfilingPassHoldsTheLargestImages) {
  const auto start = started(kMistral24b, logged_job());
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_NEAR(gib(start->weights), 44.76, 0.05);
  EXPECT_NEAR(gib(start->activation), 2.03, 0.05);
  EXPECT_NEAR(static_cast<double>(start->kv_cache_tokens), 184752.0, 1000.0);
  ServingJob text = logged_job();
  text.language_model_only = true;
  const auto without = started(kMistral24b, text);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_GT(gib(start->weights) - gib(without->weights), 0.7) << "the tower has 0.4 billion parameters";
  EXPECT_LT(without->activation, start->activation);
}

/// Three of four layers are gated delta nets: 16 heads of keys, 32 of values, 128 wide, a convolution of 4.
constexpr const char* kHybrid = R"({"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120,
  "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936,
  "max_position_embeddings": 262144, "full_attention_interval": 4, "linear_num_key_heads": 16,
  "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
  "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
  "decoder_sparse_step": 1, "partial_rotary_factor": 0.25, "tie_word_embeddings": false})";

TEST(Vllm, ABlockOfAttentionIsAsLargeAsAState) {
  const auto model = read_served_model(kHybrid);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->attention_layers, 2);
  EXPECT_EQ(model->states.layers, 6);
  EXPECT_EQ(model->states.convolved, 3 * (2 * 16 * 128 + 32 * 128));
  EXPECT_EQ(model->states.carried, 32 * 128 * 128);
  const auto start = started(kHybrid, logged_job());
  ASSERT_TRUE(start) << start.error().message;
  // 2 x (24,576 + 524,288) bytes of state; a token has 2 x 2 x 256 elements of 2 bytes: 536 tokens, 544 in sixteens.
  // Two layers a group: one group of attention and three of states.
  EXPECT_EQ(start->kv_cache_tokens, start->kv_cache_blocks / 4 * 544);
  EXPECT_EQ(start->kv_cache_needed.count() / (2 * 544 * 2048), 8192 / 544 + 1 + 3) << "a state is one block";
}

TEST(Vllm, SlotsOfAdaptersAndOffloadedWeights) {
  ServingJob job = logged_job();
  const auto plain = started(kLlama8b, job);
  job.enable_lora = true;
  job.max_loras = 4;
  job.max_lora_rank = 32;
  const auto adapted = started(kLlama8b, job);
  ASSERT_TRUE(plain && adapted);
  // A layer's sides: q, k, v, gate and up read 4,096 and give 4,096, 1,024, 1,024 and twice 14,336; o and down.
  const std::int64_t sides = 5 * 4096 + (4096 + 2 * 1024 + 2 * 14336) + (4096 + 4096) + (14336 + 4096);
  const std::int64_t tables = 2 * (128256 + 4096);
  EXPECT_EQ(adapted->adapters.count(), (32 * sides + tables) * 4 * 32 * 2);
  EXPECT_EQ(adapted->weights.count(), plain->weights.count() + adapted->adapters.count());
  job = logged_job();
  job.cpu_offload_gb = 4.0;
  const auto offloaded = started(kLlama8b, job);
  ASSERT_TRUE(offloaded);
  EXPECT_EQ(plain->weights.count() - offloaded->weights.count(), std::int64_t{4} << 30);
}

TEST(Vllm, ACacheOfGivenSizeIsTaken) {
  ServingJob job = logged_job();
  job.kv_cache_memory_bytes = std::int64_t{2} << 30;
  const auto start = started(kLlama8b, job);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(start->starts) << start->reason;
  EXPECT_EQ(start->kv_cache_tokens, 16384) << "128 KiB a token";
  EXPECT_EQ(start->requested.count(), start->weights.count() + start->activation.count() +
                                          start->outside_pytorch.count() + (std::int64_t{2} << 30));
}

TEST(Vllm, ACacheOfGivenSizeMustFitBesideTheRest) {
  ServingJob job = logged_job();
  job.kv_cache_memory_bytes = std::int64_t{500} << 30;
  const auto large = started(kLlama8b, job);
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_FALSE(large->starts);
  EXPECT_NE(large->reason.find("kv_cache_memory_bytes"), std::string::npos) << large->reason;
  job.kv_cache_memory_bytes = 1;
  const auto small = started(kLlama8b, job);
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_FALSE(small->starts);
  EXPECT_NE(small->reason.find("hold no block"), std::string::npos) << small->reason;
  EXPECT_EQ(small->reason.find("gpu_memory_utilization"), std::string::npos) << "it cannot help";
  job.kv_cache_memory_bytes = INT64_MAX;
  EXPECT_FALSE(started(kLlama8b, job));
}

TEST(Vllm, TypesOfTheCacheAreWholeWords) {
  ServingJob job = logged_job();
  for (const char* word : {"fp8_foo", "fp8_", "bf16", ""}) {
    job.kv_cache_dtype = word;
    const auto start = started(kLlama8b, job);
    ASSERT_FALSE(start) << word;
    EXPECT_NE(start.error().message.find("fp8_e5m2"), std::string::npos) << "known words are listed";
  }
}

TEST(Vllm, RanksOfAdaptersAreVllms) {
  ServingJob job = logged_job();
  job.max_lora_rank = 24;
  EXPECT_TRUE(started(kLlama8b, job)) << "no adapters are asked for";
  job.enable_lora = true;
  EXPECT_FALSE(started(kLlama8b, job));
  job.max_lora_rank = 512;
  job.max_loras = INT32_MAX;
  const auto start = started(kLlama8b, job);
  ASSERT_FALSE(start) << "no GPU has as much memory";
  EXPECT_EQ(start.error().code, core::ErrorCode::overflow);
}

}  // namespace
}  // namespace gpumem::serve
