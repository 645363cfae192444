// How long collectives take, counted by hand.
#include "gpumem/search/layout_time.hpp"

#include "expect.hpp"

namespace gpumem::search {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

constexpr double kReached = 0.8;
constexpr double kLinkHop = 3.4e-6;
constexpr double kNetworkHop = 14e-6;

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
  ASSERT_EQ(links->assumed.size(), 1U) << "what rings reach of them is assumed of every GPU";
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

TEST(Links, OfNoClusterAreRefused) {
  EXPECT_TRUE(fails(links_of(h100(), {.gpus_per_node = 0}), ErrorCode::invalid_argument, 0, "`gpus_per_node`"));
  EXPECT_TRUE(fails(links_of(h100(), {.network_gbps = 0.0}), ErrorCode::invalid_argument, 0, "`network_gbps`"));
}

TEST(Links, ARingWithinANodeSendsAllButItsOwnPart) {
  const double seconds = gather_seconds(dgx(), {8, 1}, 8e9);
  EXPECT_DOUBLE_EQ(seconds, 7e9 / (450e9 * kReached) + 7 * kLinkHop);
  EXPECT_DOUBLE_EQ(reduce_seconds(dgx(), {8, 1}, 8e9), 2 * seconds) << "scattered, then gathered";
}

TEST(Links, ARingOverNodesLeavesEachByAllItsCards) {
  // 16 ranks next to each other: 8 cards of 50 GB/s are less than NVLink's 450.
  EXPECT_DOUBLE_EQ(gather_seconds(dgx(), {16, 1}, 16e9), 15e9 / (400e9 * kReached) + kNetworkHop + 14 * kLinkHop);
  // Two ranks, one a node.
  EXPECT_DOUBLE_EQ(gather_seconds(dgx(), {2, 8}, 2e9), 1e9 / (50e9 * kReached) + kNetworkHop);
}

TEST(Links, OneRankSendsNothing) {
  EXPECT_EQ(gather_seconds(dgx(), {1, 1}, 1e9), 0.0);
  EXPECT_EQ(exchange_seconds(dgx(), {1, 1}, 1e9), 0.0);
  EXPECT_EQ(send_seconds(dgx(), {1, 1}, 1e9), 0.0);
  EXPECT_EQ(gather_seconds(dgx(), {8, 1}, 0.0), 0.0);
}

TEST(Links, AnExchangeIsBoundByWhatLeavesTheNode) {
  EXPECT_DOUBLE_EQ(exchange_seconds(dgx(), {8, 1}, 8e9), 7e9 / (450e9 * kReached) + kLinkHop);
  EXPECT_DOUBLE_EQ(exchange_seconds(dgx(), {16, 1}, 16e9), 8e9 / (50e9 * kReached) + kNetworkHop);
}

TEST(Links, NeighboursOfAPipelineAreInANodeOrNot) {
  EXPECT_DOUBLE_EQ(send_seconds(dgx(), {2, 4}, 1e9), 1e9 / (450e9 * kReached) + kLinkHop);
  EXPECT_DOUBLE_EQ(send_seconds(dgx(), {2, 8}, 1e9), 1e9 / (50e9 * kReached) + kNetworkHop);
}

}  // namespace
}  // namespace gpumem::search
