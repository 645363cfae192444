// How long collectives take, counted by hand.
#include "gpumem/search/layout_time.hpp"
#include "expect.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using core::ErrorCode;
using model::Shardings;
using testing::fails;
using testing::small_llama;
using testing::succeeds;

constexpr double kReached = 0.8;
// NCCL's figures of protocol Simple, and of LL128.
constexpr double kBase = 8.4e-6;
constexpr double kLinkHop = 3.4e-6;
constexpr double kPcieHop = 5.7e-6;
constexpr double kNetworkHop = 14e-6;
constexpr double kLl128Base = 14e-6;
constexpr double kLl128Hop = 1.9e-6;

Links dgx() { return {.link = 450e9, .network = 50e9, .gpus_per_node = 8}; }

device::GpuProfile h100() {
  const auto profile = device::find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(profile));
  return profile ? *profile : device::GpuProfile();
}

TEST(Links, AreTheProfilesFigures) {
  const auto links = links_of(h100(), {});
  ASSERT_TRUE(succeeds(links));
  EXPECT_EQ(links->link, 450e9);
  EXPECT_EQ(links->network, 50e9);
  EXPECT_EQ(links->gpus_per_node, 8);
  EXPECT_DOUBLE_EQ(links->reached, 20.6 / 25.0);
  EXPECT_DOUBLE_EQ(links->busy_share, 24.0 / 132.0) << "a channel an SM";
  EXPECT_TRUE(links->nvlink);
  ASSERT_TRUE(links->adds) << "NVSwitches of Hopper";
  EXPECT_EQ(links->adds->efficiency, 0.85);
  ASSERT_EQ(links->assumed.size(), 1U) << "what collectives reach of the network is assumed of every GPU";
}

TEST(Links, OfTheUserCountBeforeTheProfiles) {
  const auto links = links_of(h100(), {.gpus_per_node = 4, .network_gbps = 200.0});
  ASSERT_TRUE(succeeds(links));
  EXPECT_EQ(links->network, 25e9);
  EXPECT_EQ(links->gpus_per_node, 4);
}

TEST(Links, ThatNobodyNamesAreAssumedAndSaid) {
  device::GpuProfile profile = h100();
  profile.link_bandwidth_bytes_per_second.reset();
  profile.network_bandwidth_bytes_per_second.reset();
  profile.gpus_per_node.reset();
  const auto links = links_of(profile, {});
  ASSERT_TRUE(succeeds(links));
  ASSERT_EQ(links->assumed.size(), 4U);
  EXPECT_EQ(links->assumed[0].text,
            "32.0 GB/s between the GPUs of a node, which the profile of h100-80gb does not name");
  EXPECT_EQ(links->assumed[1].text,
            "12.5 GB/s from each GPU to other nodes (`network_gbps`), which the profile of h100-80gb does not name");
  EXPECT_EQ(links->gpus_per_node, 8);
}

TEST(Links, OverPcieTakeNoneOfNvlinksFigures) {
  const auto profile = device::find_profile("h100-pcie-80gb");
  ASSERT_TRUE(succeeds(profile));
  const auto links = links_of(*profile, {});
  ASSERT_TRUE(succeeds(links));
  EXPECT_FALSE(links->nvlink) << "though its compute capability is that of H100 SXM";
  EXPECT_EQ(links->reached, kReached);
  EXPECT_FALSE(links->adds);
  EXPECT_DOUBLE_EQ(links->busy_share, 2.0 / 114.0);
  EXPECT_EQ(links->assumed.back().text,
            "collectives take as long as NCCL's own model says, and reach 0.8 of the links and of the network");
  EXPECT_DOUBLE_EQ(gather_seconds(*links, {8, 1}, 8e4), kBase + 7e4 / (links->link * kReached) + 7 * kPcieHop)
      << "in protocol Simple, though LL128 would be faster";
  EXPECT_DOUBLE_EQ(send_seconds(*links, {2, 1}, 1e9), 1e9 / (links->link * kReached) + kBase + kPcieHop);
}

TEST(Links, OfAllBlackwellsAreCountedAlike) {
  auto profile = device::find_profile("b200-180gb");
  ASSERT_TRUE(succeeds(profile));
  const auto b200 = links_of(*profile, {});
  profile->compute_capability = "10.3";
  const auto b300 = links_of(*profile, {});
  ASSERT_TRUE(succeeds(b200));
  ASSERT_TRUE(succeeds(b300));
  EXPECT_DOUBLE_EQ(b200->reached, 40.1 / 50.0);
  ASSERT_TRUE(b200->adds && b300->adds);
  EXPECT_EQ(b200->adds->efficiency, 0.74);
  EXPECT_EQ(b300->adds->efficiency, 0.74);
}

TEST(Links, OfNoClusterAreRefused) {
  EXPECT_TRUE(fails(links_of(h100(), {.gpus_per_node = 0}), ErrorCode::invalid_argument, 0, "`gpus_per_node`"));
  EXPECT_TRUE(fails(links_of(h100(), {.network_gbps = 0.0}), ErrorCode::invalid_argument, 0, "`network_gbps`"));
}

TEST(Links, ARingWithinANodeSendsAllButItsOwnPart) {
  const double seconds = gather_seconds(dgx(), {8, 1}, 8e9);
  EXPECT_DOUBLE_EQ(seconds, kBase + 7e9 / (450e9 * kReached) + 7 * kLinkHop);
  EXPECT_DOUBLE_EQ(reduce_seconds(dgx(), {8, 1}, 8e9), 2 * seconds - kBase) << "scattered, then gathered, in one call";
}

TEST(Links, ARingOverNodesLeavesEachByAllItsCards) {
  // 16 ranks next to each other: 8 cards of 50 GB/s are less than NVLink's 450.
  EXPECT_DOUBLE_EQ(gather_seconds(dgx(), {16, 1}, 16e9),
                   kBase + 15e9 / (400e9 * kReached) + kNetworkHop + 14 * kLinkHop);
  // Two ranks, one a node.
  EXPECT_DOUBLE_EQ(gather_seconds(dgx(), {2, 8}, 2e9), kBase + 1e9 / (50e9 * kReached) + kNetworkHop);
}

TEST(Links, ASmallMessageTakesTheProtocolOfLeastLatency) {
  EXPECT_DOUBLE_EQ(gather_seconds(dgx(), {8, 1}, 8e4), kLl128Base + 7e4 / (450e9 * kReached * 0.92) + 7 * kLl128Hop);
}

TEST(Links, ASumOverManyNodesGoesUpATree) {
  const Group many = {512, 1};
  const double ring = kBase + 2 * (511.0 / 512.0 * 1e6 / (400e9 * kReached) + 63 * kNetworkHop + 448 * kLinkHop);
  const double tree = kBase + 2 * (1e6 / (400e9 * kReached * 0.92) + 7 * 4e-6 + 6 * kNetworkHop);
  EXPECT_DOUBLE_EQ(reduce_seconds(dgx(), many, 1e6), tree);
  EXPECT_LT(tree, ring / 5) << "64 nodes are six doublings";
}

TEST(Links, SwitchesThatAddSaveTheHopsOfASum) {
  Links hopper = dgx();
  hopper.adds = {.efficiency = 0.85, .channel = 60e9};
  // Eight channels of 40 GB/s, for which each GPU gives nine parts; 0.85 and 7/8 of it, up and down at once.
  const double channel = 2 * 0.85 * 7.0 / 8.0 * 450e9 * kReached / 9;
  EXPECT_DOUBLE_EQ(reduce_seconds(hopper, {8, 1}, 8e9), 25e-6 + 2 * 7e9 / (8 * channel));
  EXPECT_LT(reduce_seconds(hopper, {8, 1}, 8e9), reduce_seconds(dgx(), {8, 1}, 8e9) / 1.2);
  EXPECT_DOUBLE_EQ(reduce_seconds(hopper, {4, 1}, 8e9), reduce_seconds(dgx(), {4, 1}, 8e9))
      << "four channels of 60 GB/s are less than a ring";
  EXPECT_DOUBLE_EQ(gather_seconds(hopper, {8, 1}, 8e9), gather_seconds(dgx(), {8, 1}, 8e9)) << "a gather adds nothing";
  EXPECT_DOUBLE_EQ(reduce_seconds(hopper, {2, 1}, 8e9), reduce_seconds(dgx(), {2, 1}, 8e9)) << "nor does a pair";
}

TEST(Links, OneRankSendsNothing) {
  EXPECT_EQ(gather_seconds(dgx(), {1, 1}, 1e9), 0.0);
  EXPECT_EQ(exchange_seconds(dgx(), {1, 1}, 1e9), 0.0);
  EXPECT_EQ(send_seconds(dgx(), {1, 1}, 1e9), 0.0);
  EXPECT_EQ(gather_seconds(dgx(), {8, 1}, 0.0), 0.0);
}

TEST(Links, AnExchangeIsBoundByWhatLeavesTheNode) {
  EXPECT_DOUBLE_EQ(exchange_seconds(dgx(), {8, 1}, 8e9), 7e9 / (450e9 * kReached) + kBase + kLinkHop);
  EXPECT_DOUBLE_EQ(exchange_seconds(dgx(), {16, 1}, 16e9), 8e9 / (50e9 * kReached) + kBase + kNetworkHop);
}

TEST(Links, NeighboursOfAPipelineAreInANodeOrNot) {
  EXPECT_DOUBLE_EQ(send_seconds(dgx(), {2, 4}, 1e9), 1e9 / (450e9 * kReached) + kBase + kLinkHop);
  EXPECT_DOUBLE_EQ(send_seconds(dgx(), {2, 8}, 1e9), 1e9 / (50e9 * kReached) + kBase + kNetworkHop);
}

// The time of a step out of its parts, counted by hand.

/// One second a block forward, two backward; a GB of parameters in each.
BlockWork work() {
  BlockWork made;
  made.blocks = 8;
  made.block = {1.0, 2.0, 0.1, 0.0, 500'000'000};
  made.before = {0.5, 0.5, 0.0, 0.0, 0};
  made.behind = {1.0, 1.0, 0.0, 0.0, 0};
  made.sent = {.hidden = 1e9, .keys_values = 1e8, .routed = 1e9, .sums = 2};
  return made;
}

Links links() { return {.link = 450e9, .network = 50e9, .gpus_per_node = 8}; }

model::TrainingJob job_with(const model::Layout& layout, std::int64_t micro_batches = 4) {
  model::TrainingJob job = small_llama(8);
  job.layout = layout;
  job.gradient_accumulation = micro_batches;
  return job;
}

LayoutTime time_of(const model::TrainingJob& job) {
  const auto time = layout_time(job, work(), links());
  EXPECT_TRUE(succeeds(time));
  return time ? *time : LayoutTime();
}

constexpr double kHostStep = 1.55e-3;

TEST(LayoutTime, OneGpuComputesAllMicroBatches) {
  const LayoutTime time = time_of(job_with({}));
  EXPECT_NEAR(time.compute, 4 * (8 * 3.0 + 3.0) + kHostStep, 1e-9);
  EXPECT_NEAR(time.optimizer, 8 * 0.1 * 2, 1e-9) << "masters in float32 are twice the parameters' bytes";
  EXPECT_EQ(time.tensor + time.context + time.experts + time.sharding + time.pipeline, 0.0);
}

TEST(LayoutTime, APipelineHasTheBubbleOfItsSlowestStage) {
  const LayoutTime time = time_of(job_with({.pipeline_parallel = 4}));
  const double pass = 2 * 3.0 + 2.0;  // two blocks and the head
  const double sends = 2 * send_seconds(links(), {4, 1}, 1e9);
  EXPECT_NEAR(time.compute, 4 * pass + kHostStep, 1e-9);
  EXPECT_NEAR(time.pipeline, 4 * sends + 3 * (pass + sends), 1e-9);
  model::Layout interleaved = {.pipeline_parallel = 4, .virtual_stages = 2};
  interleaved.schedule = model::Schedule::interleaved;
  const LayoutTime less = time_of(job_with(interleaved));
  EXPECT_NEAR(less.pipeline, 4 * 2 * sends + 1.5 * (pass + 2 * sends), 1e-9) << "half the bubble, twice the sends";
}

TEST(LayoutTime, TensorParallelRanksSumBehindEachHalfOfABlock) {
  const LayoutTime time = time_of(job_with({.tensor_parallel = 8}));
  const double one = reduce_seconds(links(), {8, 1}, 1e9);
  EXPECT_NEAR(time.tensor, 4 * one * (2 * 8 * 2 + 2), 1e-9);
  model::TrainingJob again = job_with({.tensor_parallel = 8});
  again.activation_checkpointing = true;
  EXPECT_NEAR(time_of(again).tensor, 4 * one * (2 * 8 * 3 + 2), 1e-9) << "and again where a block runs again";
}

TEST(LayoutTime, MegatronGathersInputsAgainAndSumsGradientsBesideProducts) {
  model::Layout layout = {.tensor_parallel = 8};
  layout.sequence_parallel = true;
  model::TrainingJob job = job_with(layout);
  job.loop = model::Loop::megatron;
  const double gather = gather_seconds(links(), {8, 1}, 1e9);
  const double ends = 2 * 2 * gather;
  EXPECT_NEAR(time_of(job).tensor, 4 * (8 * (2 * 2 * gather + 2 * gather) + ends), 1e-9)
      << "a gather and a scatter forward, a gather backward; a block's products take longer than the rest";
  Links busy = links();
  busy.busy_share = 0.25;
  const auto slower = layout_time(job, work(), busy);
  ASSERT_TRUE(succeeds(slower));
  EXPECT_NEAR(slower->tensor - time_of(job).tensor, 4 * 8 * 0.25 * 4 * gather, 1e-9)
      << "which miss a quarter of the SMs";
}

TEST(LayoutTime, MegatronsKeysGoAroundBesideAttention) {
  model::TrainingJob job = job_with({.context_parallel = 8});
  job.loop = model::Loop::megatron;
  EXPECT_EQ(time_of(job).context, 0.0);
}

TEST(LayoutTime, WithoutOverlapAStepsGradientsWait) {
  Links apart = links();
  apart.overlap = false;
  const auto job = job_with({.data_parallel = 8, .sharding = {Shardings::distributed_optimizer, 0}});
  const auto time = layout_time(job, work(), apart);
  ASSERT_TRUE(succeeds(time));
  EXPECT_NEAR(time->sharding, gather_seconds(apart, {8, 1}, 8 * 2e9) + gather_seconds(apart, {8, 1}, 8 * 1e9), 1e-9);
  EXPECT_EQ(time_of(job).sharding, 0.0);
}

TEST(LayoutTime, ShardedParametersHideBehindABlock) {
  const LayoutTime hidden = time_of(job_with({.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}}));
  EXPECT_EQ(hidden.sharding, 0.0) << "a GB takes less than a second";
  const auto slow = layout_time(job_with({.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}}), work(),
                                {.link = 1e9, .network = 1e9, .gpus_per_node = 8});
  ASSERT_TRUE(succeeds(slow));
  const Links one = {.link = 1e9, .network = 1e9, .gpus_per_node = 8};
  const double gather = gather_seconds(one, {8, 1}, 1e9);
  const double scatter = gather_seconds(one, {8, 1}, 2e9);  // float32
  EXPECT_NEAR(slow->sharding, 4 * 8 * ((gather - 1.0) + (gather + scatter - 2.0)), 1e-9);
}

TEST(LayoutTime, AStepsGradientsAreReducedOnce) {
  const Links slow = {.link = 1e8, .network = 1e8, .gpus_per_node = 8};
  const auto job = job_with({.data_parallel = 8, .sharding = {Shardings::distributed_optimizer, 0}});
  const auto time = layout_time(job, work(), slow);
  ASSERT_TRUE(succeeds(time));
  const double reduced = gather_seconds(slow, {8, 1}, 8 * 2e9);
  const double gathered = gather_seconds(slow, {8, 1}, 8 * 1e9);
  EXPECT_NEAR(time->sharding, (reduced - (8 * 2.0 + 1.5)) + (gathered - (8 * 1.0 + 1.5)), 1e-6);
  EXPECT_NEAR(time->optimizer, 8 * 0.1 * 2 / 8, 1e-9) << "each rank updates its share";
}

TEST(LayoutTime, KeysAndValuesGoAroundAndTokensGoToTheirExperts) {
  const LayoutTime time = time_of(job_with({.context_parallel = 8, .expert_parallel = 8}));
  const double around = gather_seconds(links(), {8, 1}, 8e8);
  EXPECT_NEAR(time.context, 4 * 8 * around * 3, 1e-9);
  EXPECT_NEAR(time.experts, 4 * 8 * 4 * exchange_seconds(links(), {8, 1}, 1e9), 1e-9);
}

TEST(LayoutTime, AllPartsAreTheStep) {
  const LayoutTime time = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
  EXPECT_EQ(time.step(), 28.0);
}

}  // namespace
}  // namespace gpumem::search
