#include "gpumem/place/server.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "expect.hpp"
#include "servers.hpp"

namespace gpumem::place {
namespace {

using core::Bytes;
using core::ErrorCode;
using testing::fails;
using testing::gib;
using testing::server_of;
using testing::succeeds;

TEST(ServerGpu, FreeIsLessTheLargerOfUsedAndSetAside) {
  ServerGpu gpu = server_of({{10.0}}).gpus[0];
  EXPECT_EQ(gpu.free(), gib(30));
  ASSERT_TRUE(succeeds(gpu.jobs.add({"a", gib(8)})));
  EXPECT_EQ(gpu.free(), gib(30));
  ASSERT_TRUE(succeeds(gpu.jobs.add({"b", gib(8)})));
  EXPECT_EQ(gpu.set_aside(), gib(16));
  EXPECT_EQ(gpu.free(), gib(24));
  gpu.used = gib(50);
  EXPECT_EQ(gpu.free(), Bytes());
}

TEST(ServerGpu, IsIdleWithNothingButTheDriver) {
  ServerGpu gpu = server_of({{}}).gpus[0];
  gpu.used = kIdleUse;
  EXPECT_TRUE(gpu.idle());
  gpu.used = Bytes(kIdleUse.count() + 1);
  EXPECT_FALSE(gpu.idle());
  gpu.used = Bytes();
  ASSERT_TRUE(succeeds(gpu.jobs.add({"a", Bytes()})));
  EXPECT_FALSE(gpu.idle());
}

TEST(PlacedJobs, ComeAndGo) {
  PlacedJobs jobs;
  ASSERT_TRUE(succeeds(jobs.add({"a", gib(1), 0.5})));
  ASSERT_TRUE(succeeds(jobs.add({"b", gib(2)})));
  EXPECT_EQ(jobs.size(), 2U);
  ASSERT_NE(jobs.find("a"), nullptr);
  EXPECT_EQ(jobs.find("a")->smact, 0.5);
  EXPECT_TRUE(jobs.remove("a"));
  EXPECT_FALSE(jobs.remove("a"));
  EXPECT_EQ(jobs.memory(), gib(2));
  EXPECT_EQ(jobs.begin()->id, "b");
  EXPECT_TRUE(jobs.remove("b"));
  EXPECT_TRUE(jobs.empty());
  EXPECT_EQ(jobs.memory(), Bytes());
}

TEST(PlacedJobs, RefuseWhatCannotBe) {
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  PlacedJobs jobs;
  EXPECT_TRUE(fails(jobs.add({"", gib(1)}), kInvalid, 0, "has no id"));
  EXPECT_TRUE(fails(jobs.add({"a", Bytes(-1)}), kInvalid, 0, "negative"));
  EXPECT_TRUE(fails(jobs.add({"a", gib(1), 1.5}), kInvalid, 0, "between 0 and 1"));
  EXPECT_TRUE(fails(jobs.add({"a", gib(1), std::nan("")}), kInvalid, 0, "between 0 and 1"));
  ASSERT_TRUE(succeeds(jobs.add({"a", gib(1)})));
  EXPECT_TRUE(fails(jobs.add({"a", gib(1)}), kInvalid, 0, "'a' is on this GPU already"));
  EXPECT_TRUE(fails(jobs.add({"b", Bytes(INT64_MAX)}), ErrorCode::overflow, 0, "64 bits"));
  EXPECT_TRUE(fails(jobs.add({"b", gib(1), 0.0, true}), kInvalid, 0, "must have its GPU to itself"));
  EXPECT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs.memory(), gib(1));
}

TEST(PlacedJobs, AJobThatIsToBeAloneIs) {
  PlacedJobs jobs;
  ASSERT_TRUE(succeeds(jobs.add({"a", gib(1), 0.0, true})));
  EXPECT_TRUE(jobs.exclusive());
  EXPECT_TRUE(fails(jobs.add({"b", gib(1)}), ErrorCode::invalid_argument, 0, "the job there must have it to itself"));
  EXPECT_TRUE(jobs.remove("a"));
  EXPECT_FALSE(jobs.exclusive());
  EXPECT_TRUE(succeeds(jobs.add({"b", gib(1)})));
}

TEST(Server, IsValidated) {
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  EXPECT_TRUE(succeeds(validate(server_of({{}, {50.0, 1.0}}))));
  EXPECT_TRUE(fails(validate(Server{}), kInvalid, 0, "the server has no GPUs"));
  EXPECT_TRUE(fails(validate(server_of({{0.0, 0.0, 0.0}})), kInvalid, 0, "GPU '0' has no memory"));
  EXPECT_TRUE(fails(validate(server_of({{-1.0}})), kInvalid, 0, "negative"));
  EXPECT_TRUE(fails(validate(server_of({{0.0, -0.1}})), kInvalid, 0, "between 0 and 1"));
  Server server = server_of({{}, {}});
  server.gpus[1].id = "0";
  EXPECT_TRUE(fails(validate(server), kInvalid, 0, "two GPUs have the id '0'"));
  server.gpus[1].id = "";
  EXPECT_TRUE(fails(validate(server), kInvalid, 0, "has no id"));
}

}  // namespace
}  // namespace gpumem::place
