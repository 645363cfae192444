#include "gpumem/place/policy.hpp"

#include <gtest/gtest.h>

#include "servers.hpp"

namespace gpumem::place {
namespace {

using core::Bytes;
using testing::gib;
using testing::request_of;
using testing::server_of;

const Server kServer = server_of({{}, {}});
constexpr RecoveryRule kGrowing = {.kind = RecoveryKind::growing};

TEST(Recovery, ByDefaultIsAlone) {
  const Retry retry = after_out_of_memory(request_of(10), {1, gib(12)}, kServer);
  ASSERT_TRUE(retry.request);
  EXPECT_TRUE(retry.request->exclusive);
  EXPECT_EQ(retry.request->memory, gib(10));
  EXPECT_EQ(retry.words, "job 'job' runs again without other jobs");
}

TEST(Recovery, GivesUpWhereAWholeGpuIsTooLittle) {
  const Retry retry = after_out_of_memory(request_of(10), {2, gib(40), true}, kServer);
  EXPECT_FALSE(retry.request);
  EXPECT_EQ(retry.words,
            "job 'job' is given up: it ran out of memory 2 times, the last time without other jobs, with 40.0 GiB, and "
            "there is no larger GPU");
}

TEST(Recovery, TakesALargerGpuWhereThereIsOne) {
  const Server server = server_of({{}, {0.0, 0.0, 80.0}});
  Request request = request_of(10);
  const Retry retry = after_out_of_memory(request, {1, gib(40), true}, server);
  ASSERT_TRUE(retry.request);
  EXPECT_TRUE(retry.request->exclusive);
  EXPECT_EQ(retry.request->alone, Bytes(gib(40).count() + 1));
  EXPECT_EQ(retry.words, "job 'job' runs again without other jobs, on a GPU with more than the 40.0 GiB that it had");
  request.gpus = 2;  // of which only one is larger
  EXPECT_FALSE(after_out_of_memory(request, {1, gib(40), true}, server).request);
}

TEST(Recovery, CanGrow) {
  Request request = request_of(4);
  request.alone = gib(2);
  const Retry first = after_out_of_memory(request, {1, gib(6)}, kServer, kGrowing);
  ASSERT_TRUE(first.request);
  EXPECT_FALSE(first.request->exclusive);
  EXPECT_EQ(first.request->memory, gib(11));
  EXPECT_EQ(first.request->alone, gib(11));
  EXPECT_EQ(first.words, "job 'job' runs again with 11.0 GiB instead of the 6.00 GiB that it had");
  const Retry second = after_out_of_memory(*first.request, {2, gib(11)}, kServer, kGrowing);
  ASSERT_TRUE(second.request);
  EXPECT_EQ(second.request->memory, gib(21));
  const Retry third = after_out_of_memory(*second.request, {3, gib(21)}, kServer, kGrowing);
  ASSERT_TRUE(third.request);
  EXPECT_TRUE(third.request->exclusive);
  EXPECT_FALSE(after_out_of_memory(*third.request, {4, gib(40), true}, kServer, kGrowing).request);
}

TEST(Recovery, IsAloneWhereGrowthLeavesTheLargestGpu) {
  const Retry retry = after_out_of_memory(request_of(36), {1, gib(36)}, kServer, kGrowing);
  ASSERT_TRUE(retry.request);
  EXPECT_TRUE(retry.request->exclusive);
  const RecoveryRule beyond = {.kind = RecoveryKind::growing, .step = Bytes(INT64_MAX)};
  EXPECT_TRUE(after_out_of_memory(request_of(1), {2, gib(1)}, kServer, beyond).request->exclusive);
}

TEST(Recovery, EndsAfterSoManyRetries) {
  for (const RecoveryKind kind : {RecoveryKind::exclusive, RecoveryKind::growing}) {
    const RecoveryRule rule = {.kind = kind, .retries = 2};
    EXPECT_TRUE(after_out_of_memory(request_of(1), {2, gib(2)}, kServer, rule).request);
    const Retry last = after_out_of_memory(request_of(1), {3, gib(2)}, kServer, rule);
    EXPECT_FALSE(last.request);
    EXPECT_EQ(last.words, "job 'job' is given up: it ran out of memory 3 times, and is retried at most 2 times");
  }
  EXPECT_FALSE(after_out_of_memory(request_of(1), {1, gib(2)}, kServer, {.retries = 0}).request);
}

}  // namespace
}  // namespace gpumem::place
