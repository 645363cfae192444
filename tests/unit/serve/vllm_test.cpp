#include "gpumem/serve/vllm.hpp"

#include <gtest/gtest.h>

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
  job.gpu_memory_utilization_given = true;
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

TEST(Vllm, UnknownIsSaid) {
  ServingJob job = logged_job();
  job.version = "0.9.2";
  EXPECT_FALSE(started(kLlama8b, job));
  job.version = "0.99.0";
  ASSERT_TRUE(started(kLlama8b, job));
  EXPECT_NE(started(kLlama8b, job)->assumed.front().find("newer"), std::string::npos);
  EXPECT_EQ(read_served_model(R"({"model_type": "unheard"})").error().code, core::ErrorCode::unknown_format);
  EXPECT_EQ(read_served_model(R"({"model_type": "llama"})").error().code, core::ErrorCode::missing_information);
  EXPECT_FALSE(read_served_model("[]"));
  job.tensor_parallel = 3;
  EXPECT_FALSE(started(kLlama8b, job));
}

}  // namespace
}  // namespace gpumem::serve
