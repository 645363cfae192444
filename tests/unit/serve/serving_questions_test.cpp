#include "gpumem/serve/serving_questions.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/serve/server_command.hpp"

namespace gpumem::serve {
namespace {

using testing::succeeds;

ServedModel llama() {
  const auto text = core::read_file(GPUMEM_SOURCE_DIR "/examples/configs/llama3_8b/config.json");
  EXPECT_TRUE(succeeds(text));
  const auto model = read_served_model(*text);
  EXPECT_TRUE(succeeds(model));
  return *model;
}

/// Whether the server starts with this option.
bool starts(ServingJob job, std::string_view option, const std::string& value, std::string_view gpu) {
  EXPECT_TRUE(set_serving_option(job, option, value));
  const auto estimate = estimate_vllm(llama(), job, *device::find_profile(gpu));
  return estimate && estimate->starts;
}

TEST(ServingLimits, AreTheLastValuesWithWhichItStarts) {
  ServingJob job;
  job.version = "0.19.0";
  job.max_num_batched_tokens = 8192;
  job.gpu_memory_utilization = 0.8;  // of 24 GB: some 3 GiB for the cache, and 8,192 positions take 1
  const auto limits = find_serving_limits(llama(), job, *device::find_profile("l4"));
  ASSERT_TRUE(succeeds(limits));
  ASSERT_TRUE(limits->longest_context && limits->most_sequences && limits->smallest_utilization);
  const std::string tokens = std::to_string(*limits->longest_context);
  EXPECT_TRUE(starts(job, "max_model_len", tokens, "l4"));
  EXPECT_EQ(limits->longest_context, llama().max_positions) << "the model ends here";
  EXPECT_TRUE(starts(job, "max_num_seqs", std::to_string(*limits->most_sequences), "l4"));
  EXPECT_FALSE(starts(job, "max_num_seqs", std::to_string(*limits->most_sequences + 1), "l4"));
  EXPECT_TRUE(starts(job, "gpu_memory_utilization", std::to_string(*limits->smallest_utilization), "l4"));
  EXPECT_FALSE(starts(job, "gpu_memory_utilization", std::to_string(*limits->smallest_utilization - 0.01), "l4"));
  EXPECT_EQ(limits->fewest_ranks, 1);
  const auto smallest = device::find_profile(limits->smallest_gpu);
  ASSERT_TRUE(succeeds(smallest));
  EXPECT_LE(smallest->capacity().count(), device::find_profile("l4")->capacity().count());
}

/// 14.4 of 24 GB: less than the weights.
ServingJob too_small() {
  ServingJob job;
  job.gpu_memory_utilization = 0.6;
  return job;
}

TEST(ServingLimits, OfAServerThatStartsWithNoContextHaveNone) {
  const auto limits = find_serving_limits(llama(), too_small(), *device::find_profile("l4"));
  ASSERT_TRUE(succeeds(limits));
  EXPECT_FALSE(limits->longest_context);
  EXPECT_FALSE(limits->most_sequences);
  EXPECT_EQ(limits->fewest_ranks, 2) << "half of the weights fit";
}

TEST(AdviseServer, OffersWhatLetsItStartInTheOrderOfCost) {
  const auto advice = advise_server(llama(), too_small(), *device::find_profile("l4"));
  ASSERT_TRUE(succeeds(advice));
  ASSERT_GE(advice->size(), 2U);
  EXPECT_EQ(advice->front().option, "gpu_memory_utilization");
  EXPECT_EQ(advice->back().option, "tensor_parallel_size");
  for (const ServingChange& change : *advice) {
    EXPECT_TRUE(change.estimate.starts) << change.option;
    EXPECT_TRUE(starts(too_small(), change.option, change.value, "l4")) << change.option;
  }
}

TEST(AdviseServer, OffersOnlyWhatHelpsAServerThatStarts) {
  const auto gpu = *device::find_profile("h100-80gb");
  const auto now = estimate_vllm(llama(), {}, gpu);
  const auto advice = advise_server(llama(), {}, gpu);
  ASSERT_TRUE(now && now->starts);
  ASSERT_TRUE(succeeds(advice));
  for (const ServingChange& change : *advice) {
    EXPECT_GT(change.estimate.kv_cache_tokens, now->kv_cache_tokens) << change.option;
  }
}

TEST(ServingOptions, EachIsSetByItsNameAndByItsFlag) {
  for (const ServingOption& option : serving_options()) {
    const std::string value = option.flag != nullptr    ? "true"
                              : option.share != nullptr ? "0.5"
                              : option.word != nullptr  ? "fp8"
                                                        : "2";
    ServingJob by_name;
    ASSERT_TRUE(set_serving_option(by_name, option.name, value)) << option.name;
    std::vector<std::string> words = {"vllm", "serve", "m", "--" + std::string(option.name)};
    if (option.flag == nullptr) words.push_back(value);
    const auto by_flag = read_server_command(words, {});
    ASSERT_TRUE(succeeds(by_flag));
    const auto same = [&](auto member) { return member == nullptr || by_name.*member == (*by_flag).*member; };
    EXPECT_TRUE(same(option.count) && same(option.limit) && same(option.share) && same(option.word) &&
                same(option.flag) && same(option.gib))
        << option.name;
  }
  ServingJob job;
  const auto wrong = set_serving_option(job, "max_len", "8");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("max_len"), std::string::npos);
  EXPECT_NE(wrong.error().message.find("max_model_len"), std::string::npos) << "known names are listed";
  EXPECT_FALSE(set_serving_option(job, "enforce_eager", "perhaps"));
}

TEST(PlanServer, TheLayoutWithMostTokensComesFirst) {
  const auto gpu = *device::find_profile("l4");
  const auto layouts = plan_server(llama(), too_small(), gpu, 8);
  ASSERT_TRUE(succeeds(layouts));
  ASSERT_GE(layouts->size(), 3U);
  for (std::size_t at = 0; at < layouts->size(); ++at) {
    const ServingLayout& layout = (*layouts)[at];
    EXPECT_EQ(layout.tensor_parallel * layout.pipeline_parallel * layout.data_parallel, 8);
    EXPECT_EQ(layout.kv_cache_tokens, layout.estimate.kv_cache_tokens * layout.data_parallel);
    if (at > 0) {
      EXPECT_GE((*layouts)[at - 1].kv_cache_tokens, layout.kv_cache_tokens);
    }
    EXPECT_LT(layout.data_parallel, 8) << "one GPU does not hold the model";
  }
  EXPECT_FALSE(plan_server(llama(), {}, gpu, 0));
}

TEST(EstimateServer, SglangLeavesWhatItReserves) {
  ServingJob job;
  job.engine = "sglang";
  job.version = "0.5.6";
  const auto gpu = *device::find_profile("h100-80gb");
  const auto start = estimate_server(llama(), job, gpu);
  ASSERT_TRUE(succeeds(start));
  EXPECT_TRUE(start->starts) << start->reason;
  // 512 + 8,192 x 1.5 + 256 x 2 + 128 MiB are more than 10 GiB: of the GPU's memory 83.6 % are weights and cache.
  const double free = static_cast<double>(gpu.capacity().count() - start->outside_pytorch.count());
  EXPECT_NEAR(static_cast<double>(start->weights.count() + start->kv_cache.count()), 0.836 * free, 0.002 * free);
  EXPECT_EQ(start->kv_cache_tokens, start->kv_cache.count() / (32 * 2 * 8 * 128 * 2));
  job.gpu_memory_utilization = 0.999;
  EXPECT_FALSE(estimate_server(llama(), job, gpu)->starts) << "nothing is left for a chunk of tokens";
  job.version = "0.4.1";
  EXPECT_FALSE(estimate_server(llama(), job, gpu));
  job.engine = "tgi";
  EXPECT_FALSE(estimate_server(llama(), job, gpu));
}

/// A job for SGLang with one option; its error, or nothing.
std::string sglang_error(std::string_view option, std::string_view value, std::string_view version = "0.5.6") {
  ServingJob job;
  job.engine = "sglang";
  job.version = version;
  EXPECT_TRUE(set_serving_option(job, option, value)) << option;
  const auto estimate = estimate_server(llama(), job, *device::find_profile("h100-80gb"));
  return estimate ? std::string() : estimate.error().message;
}

TEST(EstimateServer, SglangRefusesOptionsWithoutRules) {
  for (const ServingOption& option : serving_options()) {
    if (!option.sglang.empty()) continue;
    const std::string error = sglang_error(option.name, option.flag != nullptr ? "true" : "2");
    EXPECT_NE(error.find(option.name), std::string::npos) << option.name << ": " << error;
  }
  for (const std::string option : {"dtype", "kv_cache_dtype", "quantization"}) {
    EXPECT_NE(sglang_error(option, "foo").find(option), std::string::npos) << option;
  }
  EXPECT_FALSE(sglang_error("kv_cache_dtype", "fp8").empty()) << "that is vLLM's word";
  for (const std::string word : {"bf16", "fp8_e4m3", "fp8_e5m2"}) EXPECT_EQ(sglang_error("kv_cache_dtype", word), "");
}

TEST(EstimateServer, NewerSglangFollowsTheNewestRules) {
  for (const std::string version : {"7", "v0.50", "0.6.1"}) {
    ServingJob job;
    job.engine = "sglang";
    job.version = version;
    const auto estimate = estimate_server(llama(), job, *device::find_profile("h100-80gb"));
    ASSERT_TRUE(succeeds(estimate));
    EXPECT_NE(estimate->assumed.front().find("newer"), std::string::npos) << version;
  }
  for (const std::string version : {"0.4", "zero", "0."}) {
    EXPECT_FALSE(sglang_error("max_num_seqs", "8", version).empty()) << version;
  }
}

TEST(AdviseServer, NamesOptionsAsTheEngineDoes) {
  ServingJob job = too_small();
  job.engine = "sglang";
  const auto advice = advise_server(llama(), job, *device::find_profile("l4"));
  ASSERT_TRUE(succeeds(advice));
  ASSERT_GE(advice->size(), 2U);
  EXPECT_EQ(advice->front().option, "mem_fraction_static");
  EXPECT_EQ(advice->back().option, "tp_size");
  const auto limits = find_serving_limits(llama(), job, *device::find_profile("l4"));
  ASSERT_TRUE(succeeds(limits));
  EXPECT_EQ(limits->engine, "sglang");
}

}  // namespace
}  // namespace gpumem::serve
