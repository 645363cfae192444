// Published recipes: each one's own layout is expected to fit (but for two, which say so), and a search looks at it; of
// layouts that were published with their throughput the plan ranks the faster one first.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using model::Checkpoints;
using model::Shardings;
using testing::succeeds;

/// Each with its file and version; all say the model, the GPUs, the sequence and the batch.
constexpr std::string_view kTitanA100 =
    "https://github.com/pytorch/torchtitan/blob/041336434916bdc0f88c1f89fda176fd3c2092e4/docs/performance.md";
constexpr std::string_view kTitanH100 =
    "https://github.com/pytorch/torchtitan/blob/31a17bfdb70bab6f62a13d21816a5339b911d6e3/benchmarks/"
    "llama3_h100_202412_torchtitan.md";
constexpr std::string_view kTitanAsync =
    "https://github.com/pytorch/torchtitan/blob/5ecb74e54b8d28abf605a248b7dec5f1876b08d8/benchmarks/"
    "asyncTP_llama3_h100_2025-06_torchtitan.md";
constexpr std::string_view kTitan70b =
    "https://github.com/pytorch/torchtitan/blob/038d5fd1bb3056e3c676d261fd720e1dfbc04bfe/torchtitan/models/llama3/"
    "train_configs/llama3_70b.toml";
constexpr std::string_view kTitan405b =
    "https://github.com/pytorch/torchtitan/blob/01424cb254492cd6f5924e26d28227d75913e122/torchtitan/models/llama3/"
    "train_configs/llama3_405b.toml";
constexpr std::string_view kBridge70b =
    "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/203599bf3f798a01f2e5e7dcf01cffc2c22e7bc6/src/megatron/bridge/"
    "recipes/llama/llama3_70b.py";
constexpr std::string_view kBridge8b =
    "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/3594df948093cdb3c5ef4846e5d95f8c4a8584eb/src/megatron/bridge/"
    "recipes/llama/llama31_8b.py";
constexpr std::string_view kZero =
    "https://github.com/deepspeedai/DeepSpeed/blob/0101896ac3683a474a1d8085ae1a37c920f642bf/docs/_tutorials/zero.md";

/// torchtitan, run_train.sh: PYTORCH_CUDA_ALLOC_CONF.
constexpr std::string_view kTitanSegments = "expandable_segments:True";

Checkpointing none() { return {}; }
Checkpointing full() { return {true, {Checkpoints::full, 0}}; }
Checkpointing selective() { return {true, {Checkpoints::selective_op, 0}}; }

struct Recipe {
  std::string_view source;
  std::string_view model;  ///< published, or the fields of a GPT-2
  std::string_view gpu;
  std::string_view framework;
  std::int64_t sequence = 0;
  std::int64_t global_batch = 0;
  MicroBatch micro_batch;
  model::Layout layout;
  double tokens = 0.0;  ///< a second, of one GPU; 0: not published, or of float8
  bool missed = false;  ///< it ran, and yet more is expected than the GPU has: by 7 % in both cases
};

model::Layout fsdp(std::int64_t data, std::int64_t tensor = 1) {
  model::Layout layout;
  layout.data_parallel = data;
  layout.tensor_parallel = tensor;
  layout.sequence_parallel = tensor > 1;
  layout.sharding.kind = Shardings::fsdp2;
  return layout;
}

model::Layout megatron(std::int64_t data, std::int64_t tensor, std::int64_t pipeline, std::int64_t stages,
                       std::int64_t context) {
  model::Layout layout = fsdp(data, tensor);
  layout.sharding.kind = Shardings::distributed_optimizer;
  layout.pipeline_parallel = pipeline;
  layout.virtual_stages = stages;
  if (stages > 1) layout.schedule = model::Schedule::interleaved;
  layout.context_parallel = context;
  return layout;
}

model::Layout zero(std::int64_t data, Shardings stage) {
  model::Layout layout = fsdp(data);
  layout.sharding.kind = stage;
  return layout;
}

constexpr std::string_view k8b = "meta-llama/Llama-3.1-8B";
constexpr std::string_view k70b = "meta-llama/Llama-3.1-70B";
constexpr std::string_view k405b = "meta-llama/Llama-3.1-405B";
constexpr std::string_view k13b = "meta-llama/Llama-2-13b-hf";
constexpr std::string_view kLlama2 = "meta-llama/Llama-2-70b-hf";

/// The tutorial's lines of arguments, and Megatron's vocabulary and positions of that time.
constexpr std::string_view kGpt1b =
    R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 16, "n_positions": 1024, "vocab_size": 50304})";
constexpr std::string_view kGpt10b =
    R"({"model_type": "gpt2", "n_layer": 50, "n_embd": 4096, "n_head": 32, "n_positions": 1024, "vocab_size": 50304})";

std::vector<Recipe> recipes() {
  return {
      {kTitanA100, k8b, "a100-80gb", "fsdp2", 8192, 64, {1, selective()}, fsdp(64), 2973},
      {kTitanA100, k70b, "a100-80gb", "fsdp2", 8192, 64, {1, full()}, fsdp(64), 331},
      {kTitanA100, k13b, "a100-80gb", "fsdp2", 4096, 128, {2, none()}, fsdp(64), 2162, true},
      {kTitanA100, k13b, "a100-80gb", "fsdp2", 4096, 128, {2, selective()}, fsdp(64), 1904},
      {kTitanA100, kLlama2, "a100-80gb", "fsdp2", 4096, 64, {1, selective()}, fsdp(64), 355},
      {kTitanA100, kLlama2, "a100-80gb", "fsdp2", 4096, 128, {2, full()}, fsdp(64), 353},
      {kTitanH100, k8b, "h100-96gb", "fsdp2", 8192, 16, {2, selective()}, fsdp(8), 5762},
      {kTitanH100, k8b, "h100-96gb", "fsdp2", 8192, 256, {2, selective()}, fsdp(128), 5605},
      {kTitanH100, k70b, "h100-96gb", "fsdp2", 8192, 512, {16, full()}, fsdp(32, 8), 0},
      {kTitanAsync, k8b, "h100-96gb", "fsdp2", 8192, 96, {12, selective()}, fsdp(8, 8), 0},
      {kTitan70b, k70b, "a100-80gb", "fsdp2", 8192, 64, {8, full()}, fsdp(8, 8), 0},
      {kTitan405b, k405b, "h100-96gb", "fsdp2", 8192, 32, {2, full()}, fsdp(16, 8), 0},
      {kBridge70b, k70b, "h100-80gb", "megatron", 8192, 512, {1, none()}, megatron(2, 4, 4, 5, 2), 0},
      {kBridge8b, k8b, "h100-80gb", "megatron", 8192, 512, {1, none()}, megatron(4, 1, 1, 1, 2), 0, true},
      {kZero, kGpt1b, "v100-32gb", "deepspeed", 1024, 8, {1, none()}, zero(8, Shardings::zero_1), 0},
      {kZero, kGpt10b, "v100-32gb", "deepspeed", 1024, 32, {1, full()}, zero(32, Shardings::zero_2), 0},
  };
}

model::TrainingJob job_of(const Recipe& recipe) {
  const auto known = summary::published_model(recipe.model);
  model::TrainingJob job = testing::job_of_config(known ? known->config : std::string(recipe.model), recipe.sequence);
  if (recipe.framework == "deepspeed") job.precision = model::Precision::fp16_mixed;
  return job;
}

Explanation told_of(const Recipe& recipe) {
  const auto gpu = device::find_profile(std::string(recipe.gpu));
  EXPECT_TRUE(succeeds(gpu));
  Question question;
  question.frameworks = *frameworks_of(recipe.framework);
  question.global_batch = recipe.global_batch;
  if (recipe.framework == "fsdp2") question.allocator = *device::parse_allocator_options(kTitanSegments);
  Candidate asked;
  asked.framework = question.frameworks.front();
  asked.layout = recipe.layout;
  asked.micro_batch = recipe.micro_batch;
  asked.micro_batches = recipe.global_batch / (recipe.layout.data_parallel * recipe.micro_batch.size);
  auto told = explain_layout(job_of(recipe), *gpu, question, asked);
  EXPECT_TRUE(succeeds(told)) << recipe.source;
  return told ? *std::move(told) : Explanation();
}

class Recipes : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Recipes, FitsAndIsAmongTheLayoutsOfTheSearch) {
  const Recipe recipe = recipes()[GetParam()];
  const Explanation told = told_of(recipe);
  for (const Refusal& refusal : told.outside) ADD_FAILURE() << refusal.text << ": " << recipe.source;
  ASSERT_TRUE(told.memory) << recipe.source;
  const auto gpu = device::find_profile(std::string(recipe.gpu));
  const bool fits = told.memory->expected.count() <= gpu->capacity().count();
  EXPECT_EQ(fits, !recipe.missed) << recipe.model << ": " << recipe.source;
  ASSERT_TRUE(told.time) << recipe.source;
  EXPECT_GT(told.time->step(), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Published, Recipes, ::testing::Range<std::size_t>(0, recipes().size()));

TEST(RecipesOfOneModel, TheFasterOneComesFirst) {
  const std::vector<Recipe> all = recipes();
  int compared = 0;
  for (const Recipe& left : all) {
    for (const Recipe& right : all) {
      const bool alike = left.model == right.model && left.gpu == right.gpu && left.sequence == right.sequence &&
                         left.layout.data_parallel == right.layout.data_parallel && left.tokens > 1.05 * right.tokens;
      if (!alike || right.tokens == 0.0) continue;
      const double left_step = told_of(left).time->step() / static_cast<double>(left.global_batch);
      const double right_step = told_of(right).time->step() / static_cast<double>(right.global_batch);
      EXPECT_LT(left_step, right_step) << left.model << " on " << left.gpu;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

/// By how much the estimated steps of a source's recipes are off, the least first.
std::vector<double> time_errors(std::string_view source) {
  std::vector<double> errors;
  for (const Recipe& recipe : recipes()) {
    if (recipe.source != source || recipe.tokens == 0.0) continue;
    const Explanation told = told_of(recipe);
    if (!told.time) {
      ADD_FAILURE() << recipe.source;
      continue;
    }
    const double samples = static_cast<double>(recipe.global_batch) / static_cast<double>(recipe.layout.data_parallel);
    const double published = samples * static_cast<double>(recipe.sequence) / recipe.tokens;
    errors.push_back(std::abs(told.time->step() / published - 1.0));
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

TEST(RecipesOfOneModel, TheirTimesAreOffAsThePageSays) {  // docs/many-gpus.md
  constexpr double kShown = 0.005;                        // the page has whole percents
  const std::vector<double> a100 = time_errors(kTitanA100);
  ASSERT_EQ(a100.size(), 6U);
  EXPECT_NEAR((a100[2] + a100[3]) / 2.0, 0.026, kShown);
  EXPECT_NEAR(a100.back(), 0.093, kShown);
  const std::vector<double> h100 = time_errors(kTitanH100);
  ASSERT_EQ(h100.size(), 2U);
  EXPECT_NEAR((h100[0] + h100[1]) / 2.0, 0.027, kShown);
  EXPECT_NEAR(h100.back(), 0.044, kShown);
}

}  // namespace
}  // namespace gpumem::search
