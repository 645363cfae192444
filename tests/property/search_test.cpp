// What pruning loses: nothing. Every layout of small models on small worlds gets an estimate once, and the search is
// held to these. And what the search returns is what it says.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpumem/estimate/replay.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/search/frameworks.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using testing::succeeds;

device::GpuProfile gpu_of(std::int64_t mebibytes) {
  auto profile = device::find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(profile));
  profile->memory_bytes.value = mebibytes << 20;
  profile->usable_bytes.reset();
  return *profile;
}

LayoutPlan plan_of(const model::TrainingJob& job, const device::GpuProfile& gpu, std::int64_t gpus, bool prune) {
  Question question;
  question.gpus = gpus;
  question.global_batch = 8;
  question.frameworks = *frameworks_of("any");
  question.show = 1'000'000;
  question.links.gpus_per_node = 4;
  question.prune = prune;
  auto plan = find_layouts(job, gpu, question);
  EXPECT_TRUE(succeeds(plan));
  return plan ? *std::move(plan) : LayoutPlan();
}

struct World {
  const char* name;
  model::TrainingJob (*job)();
  std::int64_t gpus;
  /// Of the GPUs. What is held in addition to tensors takes up to 1 GiB on one GPU, and up to 3 GiB on several.
  std::vector<std::int64_t> mebibytes;
};

class Search : public ::testing::TestWithParam<World> {};

TEST_P(Search, PruningLosesNoLayoutThatFits) {
  const model::TrainingJob job = GetParam().job();
  std::int64_t pruned_in_all = 0;
  for (const std::int64_t mebibytes : GetParam().mebibytes) {
    const device::GpuProfile gpu = gpu_of(mebibytes);
    const LayoutPlan all = plan_of(job, gpu, GetParam().gpus, false);
    const LayoutPlan pruned = plan_of(job, gpu, GetParam().gpus, true);
    EXPECT_EQ(all.candidates, pruned.candidates);
    EXPECT_EQ(all.too_large, 0);
    pruned_in_all += pruned.too_large;
    ASSERT_EQ(all.layouts.size(), pruned.layouts.size()) << "of " << all.candidates << " on " << mebibytes << " MiB";
    for (std::size_t at = 0; at < all.layouts.size(); ++at) {
      EXPECT_EQ(all.layouts[at].job, pruned.layouts[at].job);
      EXPECT_EQ(all.layouts[at].memory.expected, pruned.layouts[at].memory.expected);
    }
  }
  EXPECT_GT(pruned_in_all, 0) << "the bounds rule something out, or the test says nothing";
}

TEST_P(Search, WhatIsFoundIsWhatItSays) {
  const model::TrainingJob job = GetParam().job();
  const device::GpuProfile gpu = gpu_of(4096);
  const LayoutPlan plan = plan_of(job, gpu, GetParam().gpus, true);
  for (std::size_t at = 0; at < plan.layouts.size(); ++at) {
    const PlannedLayout& layout = plan.layouts[at];
    EXPECT_TRUE(succeeds(parallel::check(layout.job)));
    EXPECT_EQ(*parallel::world_size(layout.job.layout), GetParam().gpus);
    EXPECT_EQ(global_batch(layout.job), 8);
    EXPECT_GT(layout.step, 0.0);
    if (at % 3 != 0) continue;  // An estimate takes a hundred times as long as these.
    const auto again = estimate::Replay(device::AllocatorOptions()).estimate(layout.job, gpu);
    ASSERT_TRUE(succeeds(again));
    EXPECT_TRUE(again->fits);
    EXPECT_EQ(again->expected, layout.memory.expected);
  }
}

// From a GPU on which little fits to one on which much does; each costs a plan of every candidate.
INSTANTIATE_TEST_SUITE_P(
    Worlds, Search,
    ::testing::Values(
        World{"LlamaOnOne", [] { return testing::small_llama(4, 512, 512); }, 1, {1024, 1536}},
        World{"LlamaOnFour", [] { return testing::small_llama(8, 512, 512); }, 4, {3072, 3456}},
        World{"GptOnEight", [] { return testing::small_gpt(8, R"(, "swiglu": true)", 512, 256); }, 8, {3072}},
        World{"ExpertsOnFour",
              [] {
                return testing::small_gpt(4, R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 512)",
                                          512, 256);
              },
              4,
              {3456}},
        World{"SevenBlocksOnFour", [] { return testing::small_llama(7, 512, 512); }, 4, {3072, 3456}}),
    [](const auto& world) { return std::string(world.param.name); });

}  // namespace
}  // namespace gpumem::search
