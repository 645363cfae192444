#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "expect.hpp"
#include "gpumem/place/policies.hpp"
#include "servers.hpp"

namespace gpumem::place {
namespace {

using core::Bytes;
using core::ErrorCode;
using testing::fails;
using testing::gib;
using testing::request_of;
using testing::server_of;
using testing::succeeds;

using Gpus = std::vector<std::size_t>;

Decision decide(const Request& request, const Server& server, const Conditions& conditions = {}) {
  std::size_t turn = 0;
  const Decision decision = MostAvailableMemory().decide(request, server, conditions, turn);
  EXPECT_EQ(turn, 0U);
  return decision;
}

std::string words(const Request& request, const Server& server, const Conditions& conditions = {}) {
  return explain(decide(request, server, conditions), request, server, conditions);
}

TEST(Conditions, CloseAGpuThatIsTooBusy) {
  const Server server = server_of({{8.0, 0.80}, {20.0, 0.79}});
  EXPECT_EQ(decide(request_of(1), server).gpus, Gpus{1});
  EXPECT_EQ(decide(request_of(1), server, {.smact_cap = std::nullopt}).gpus, Gpus{0});
  const Decision decision = decide(request_of(1), server, {.smact_cap = 0.5});
  EXPECT_EQ(decision.refusal, Refusal::smact);
  EXPECT_EQ(decision.nearest, 1U);
}

TEST(Conditions, CloseAGpuWhoseActivityIsNoNumber) {
  EXPECT_EQ(decide(request_of(1), server_of({{8.0, std::nan("")}})).refusal, Refusal::smact);
}

TEST(Conditions, CloseAGpuWithLessFreeThanTheFloor) {
  const Server server = server_of({{35.5}, {36.0}});
  EXPECT_EQ(decide(request_of(1), server).refusal, Refusal::free_floor);
  EXPECT_EQ(decide(request_of(1), server).nearest, 0U);
  EXPECT_EQ(decide(request_of(1), server, {.free_floor = gib(4.5)}).gpus, Gpus{0});
}

TEST(Conditions, LeaveAnIdleGpuOpenThatIsSmallerThanTheFloor) {
  EXPECT_EQ(decide(request_of(4), server_of({{0.0, 0.0, 4.75}})).gpus, Gpus{0});
}

TEST(Conditions, CanPreferIdleGpus) {
  const Server server = server_of({{1.0, 0.1}, {0.0, 0.0, 20.0}});
  EXPECT_EQ(decide(request_of(1), server).gpus, Gpus{0});
  EXPECT_EQ(decide(request_of(1), server, {.idle_first = true}).gpus, Gpus{1});
  EXPECT_EQ(decide(request_of(1, 2), server, {.idle_first = true}).gpus, (Gpus{0, 1}));
}

TEST(Conditions, CanAddUpWhatJobsKeepBusy) {
  Server server = server_of({{4.0, 0.5}, {20.0, 0.3}, {1.0, 0.1}});
  // Its job is expected to do more than what the monitor has seen yet.
  ASSERT_TRUE(succeeds(server.gpus[2].jobs.add({"new", gib(2), 0.6})));
  Request request = request_of(1);
  const Conditions together = {.smact_together = true};
  request.smact = 0.4;
  EXPECT_DOUBLE_EQ(smact_together(server.gpus[0], request), 0.9);
  EXPECT_DOUBLE_EQ(smact_together(server.gpus[2], request), 1.0);
  EXPECT_EQ(decide(request, server).gpus, Gpus{2});
  EXPECT_EQ(decide(request, server, together).gpus, Gpus{1});
  EXPECT_EQ(words(request, server, together), "on GPU 1: 20.0 GiB free, SM activity 30 %, 70 % together");
  request.gpus = 2;
  EXPECT_EQ(decide(request, server, together).gpus, (Gpus{1, 2}));
  request.gpus = 1;
  // Better crowded than waiting: that is what the cap on what is seen is for.
  request.smact = 0.7;
  EXPECT_EQ(decide(request, server, together).gpus, Gpus{2});
  EXPECT_EQ(words(request, server, together),
            "on GPU 2: 38.0 GiB free, SM activity 10 %, next to 1 other job, 130 % together");
  // Nothing is added up where the job's own activity is not known, or where there is no cap.
  request.smact = 0.0;
  EXPECT_EQ(decide(request, server, together).gpus, Gpus{2});
  request.smact = 0.4;
  EXPECT_EQ(decide(request, server, {.smact_cap = std::nullopt, .smact_together = true}).gpus, Gpus{2});
}

TEST(Conditions, AnIdleGpuIsNeverCrowded) {
  Request request = request_of(1);
  request.smact = 0.9;
  const Server server = server_of({{0.0}, {1.0, 0.3, 80.0}});
  EXPECT_EQ(decide(request, server).gpus, Gpus{1});
  EXPECT_EQ(decide(request, server, {.smact_together = true}).gpus, Gpus{0});
}

TEST(Request, CountsOnWhatIsSetAsideForOthers) {
  Server server = server_of({{2.0}});
  ASSERT_TRUE(succeeds(server.gpus[0].jobs.add({"other", gib(30)})));
  EXPECT_EQ(decide(request_of(10), server).gpus, Gpus{0});
  EXPECT_EQ(decide(request_of(10.1), server).refusal, Refusal::memory);
}

TEST(Request, NeedsNoMarginAlone) {
  Request request = request_of(41);
  EXPECT_EQ(decide(request, server_of({{}})).refusal, Refusal::never);
  request.alone = gib(39);
  EXPECT_EQ(decide(request, server_of({{1.0}, {}})).gpus, Gpus{1});
  EXPECT_EQ(decide(request, server_of({{1.0}})).refusal, Refusal::memory);
}

TEST(Request, WithoutAnEstimateGoesByTheFloor) {
  Request request = request_of(0);
  request.memory.reset();
  EXPECT_EQ(decide(request, server_of({{36.0}, {35.0}})).gpus, Gpus{1});
  EXPECT_EQ(decide(request, server_of({{36.0}})).refusal, Refusal::free_floor);
}

TEST(Request, ToBeAloneNeedsIdleGpus) {
  Request request = request_of(1);
  request.exclusive = true;
  Server server = server_of({{0.5}, {}, {}});
  ASSERT_TRUE(succeeds(server.gpus[1].jobs.add({"other", Bytes()})));
  EXPECT_EQ(decide(request, server).gpus, Gpus{2});
  ASSERT_TRUE(succeeds(place(decide(request, server), request, server)));
  EXPECT_EQ(decide(request, server).refusal, Refusal::occupied);
  request.exclusive = false;
  EXPECT_EQ(decide(request, server).gpus, Gpus{1});
  EXPECT_EQ(decide(request_of(1, 3), server).refusal, Refusal::occupied);
}

TEST(Request, OfSeveralGpusIsAllOrNothing) {
  const Server server = server_of({{10.0}, {1.0}, {30.0}, {5.0}});
  EXPECT_EQ(decide(request_of(12, 3), server).gpus, (Gpus{1, 3, 0}));
  const Decision decision = decide(request_of(12, 4), server);
  EXPECT_FALSE(decision.placed());
  EXPECT_EQ(decision.refusal, Refusal::memory);
  EXPECT_EQ(decision.nearest, 2U);
  EXPECT_EQ(decision.open, 3);
  EXPECT_EQ(decide(request_of(12, 5), server).refusal, Refusal::never);
  EXPECT_EQ(decide(request_of(41, 1), server).refusal, Refusal::never);
  EXPECT_EQ(decide(request_of(1, 0), server).refusal, Refusal::never);
  EXPECT_EQ(decide(request_of(1), Server{}).refusal, Refusal::never);
}

TEST(Request, IsValidated) {
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  EXPECT_TRUE(succeeds(validate(request_of(1))));
  EXPECT_TRUE(fails(validate(request_of(1, 0)), kInvalid, 0, "job 'job' asks for 0 GPUs"));
  EXPECT_TRUE(fails(validate(request_of(-1)), kInvalid, 0, "negative"));
  Request request = request_of(1);
  request.alone = Bytes(-1);
  EXPECT_TRUE(fails(validate(request), kInvalid, 0, "negative"));
  request = request_of(1);
  request.smact = std::nan("");
  EXPECT_TRUE(fails(validate(request), kInvalid, 0, "between 0 and 1"));
  request = request_of(1);
  request.id = "";
  EXPECT_TRUE(fails(validate(request), kInvalid, 0, "has no id"));
}

TEST(ParseMargin, TakesUpperAndBytes) {
  EXPECT_TRUE(parse_margin("upper")->upper);
  EXPECT_EQ(parse_margin("2GiB")->bytes, Bytes(std::int64_t{2} << 30));
  EXPECT_EQ(parse_margin("512 MiB")->bytes, Bytes(std::int64_t{512} << 20));
  EXPECT_EQ(parse_margin("1.5GiB")->bytes, Bytes(std::int64_t{1536} << 20));
  EXPECT_EQ(parse_margin("0")->bytes, Bytes());
  EXPECT_FALSE(parse_margin("0")->upper);
  for (const char* wrong :
       {"", "2", "2GB", "-1GiB", "GiB", "2GiB!", "Upper", "1.15x", "99999999999TiB", "9223372036854775808KiB"}) {
    EXPECT_TRUE(fails(parse_margin(wrong), ErrorCode::invalid_argument, 0, "there is no margin")) << wrong;
  }
}

TEST(Margin, IsAddedToTheEstimateOrIsItsUpper) {
  estimate::MemoryEstimate estimate;
  estimate.expected = gib(10);
  estimate.upper = gib(11);
  Request request;
  ASSERT_TRUE(succeeds(ask_for(request, estimate)));
  EXPECT_EQ(request.memory, gib(12));
  EXPECT_EQ(request.alone, gib(10));
  EXPECT_EQ(request.gpus, 1);
  estimate.gpus = 8;
  ASSERT_TRUE(succeeds(ask_for(request, estimate)));
  EXPECT_EQ(request.gpus, 8);
  ASSERT_TRUE(succeeds(ask_for(request, estimate, {.bytes = Bytes(INT64_MAX), .upper = true})));
  EXPECT_EQ(request.memory, gib(11));
  EXPECT_TRUE(fails(ask_for(request, estimate, {.bytes = Bytes(INT64_MAX)}), ErrorCode::overflow, 0, "64 bits"));
}

TEST(Decide, GivesConnectedJobsNoSlices) {
  Server server = server_of({{1.0}, {}, {}});
  server.gpus[1].profile = "a100-40gb-mig-3g.20gb";
  Request request = request_of(1, 2);
  EXPECT_EQ(decide(request, server).gpus.size(), 2U);
  request.connected = true;
  const Decision decision = decide(request, server);
  ASSERT_TRUE(decision.placed());
  EXPECT_EQ(std::count(decision.gpus.begin(), decision.gpus.end(), 1U), 0);
  server.gpus[2].id = "MIG-2";  // a slice that has no profile
  const Decision never = decide(request, server);
  EXPECT_EQ(never.refusal, Refusal::never);
  EXPECT_NE(explain(never, request, server, {}).find("not counting MIG slices"), std::string::npos);
}

TEST(Place, SetsAsideWhatWasAskedFor) {
  Server server = server_of({{1.0}, {}});
  Request request = request_of(20, 2);
  request.smact = 0.3;
  ASSERT_TRUE(succeeds(place(decide(request, server), request, server)));
  EXPECT_EQ(server.gpus[0].set_aside(), gib(20));
  EXPECT_EQ(server.gpus[1].set_aside(), gib(20));
  EXPECT_EQ(server.gpus[1].jobs.find("job")->smact, 0.3);
}

TEST(Place, SetsAsideAWholeGpuWhereTheMarginIsMore) {
  Server server = server_of({{}});
  Request request = request_of(41);
  request.alone = gib(39);
  ASSERT_TRUE(succeeds(place(decide(request, server), request, server)));
  EXPECT_EQ(server.gpus[0].set_aside(), gib(40));
  EXPECT_EQ(server.gpus[0].free(), Bytes());
}

TEST(Place, ChangesNothingWhereItFails) {
  Server server = server_of({{}, {}});
  ASSERT_TRUE(succeeds(server.gpus[0].jobs.add({"job", gib(1)})));
  const Request request = request_of(2, 2);
  const Decision decision = decide(request, server);
  ASSERT_EQ(decision.gpus, (Gpus{1, 0}));
  EXPECT_TRUE(fails(place(decision, request, server), ErrorCode::invalid_argument, 0, "already"));
  EXPECT_TRUE(server.gpus[1].jobs.empty());
  EXPECT_EQ(server.gpus[0].set_aside(), gib(1));
}

TEST(Explain, SaysWhere) {
  Server server = server_of({{17.0, 0.414}, {}});
  ASSERT_TRUE(succeeds(server.gpus[0].jobs.add({"other", gib(1)})));
  EXPECT_EQ(words(request_of(10), server), "on GPU 1: 40.0 GiB free, SM activity 0 %");
  EXPECT_EQ(words(request_of(10, 2), server),
            "on GPU 1: 40.0 GiB free, SM activity 0 %; on GPU 0: 23.0 GiB free, SM activity 41 %, next to 1 other job");
}

TEST(Explain, SaysWhyNotNow) {
  EXPECT_EQ(words(request_of(12.2), server_of({{33.0}, {30.2}})),
            "not now: GPU 1 comes closest with 9.80 GiB free of the 12.2 GiB that job asks for");
  EXPECT_EQ(words(request_of(1), server_of({{36.0}})),
            "not now: GPU 0 comes closest with 4.00 GiB free; a further job needs 5.00 GiB free");
  EXPECT_EQ(words(request_of(1), server_of({{1.0, 0.95}, {1.0, 0.85}})),
            "not now: GPU 1 comes closest with an SM activity of 85 %; a further job needs less than 80 %");
  EXPECT_EQ(
      words(request_of(10, 2), server_of({{1.0}, {35.0}})),
      "not now: 1 of the 2 GPUs that job asks for is open; GPU 1 comes closest with 5.00 GiB free of the 10.0 GiB "
      "that job asks for");
  Request alone = request_of(1);
  alone.exclusive = true;
  Server server = server_of({{1.0}});
  EXPECT_EQ(words(alone, server), "not now: GPU 0 is not idle, and job must have a GPU to itself");
  ASSERT_TRUE(succeeds(server.gpus[0].jobs.add({"other", gib(1), 0.0, true})));
  EXPECT_EQ(words(request_of(1), server), "not now: GPU 0 belongs to a job that has it to itself");
}

TEST(Explain, SaysWhyNever) {
  EXPECT_EQ(words(request_of(45), server_of({{1.0}, {30.0, 0.9, 80.0}, {}})).substr(0, 7), "not now");
  EXPECT_EQ(words(request_of(85), server_of({{1.0}, {30.0, 0.9, 80.0}})),
            "never: job asks for 85.0 GiB on a GPU; the largest, GPU 1, has 80.0 GiB");
  EXPECT_EQ(words(request_of(45, 2), server_of({{1.0}, {30.0, 0.9, 80.0}})),
            "never: job asks for 45.0 GiB on a GPU; the largest, GPU 1, has 80.0 GiB, and 2 of them are needed");
  EXPECT_EQ(words(request_of(1, 3), server_of({{}, {}})), "never: job asks for 3 GPUs; the server has 2");
  EXPECT_EQ(words(request_of(1, -1), server_of({{}})), "never: job asks for -1 GPUs");
  EXPECT_EQ(words(request_of(1), Server{}), "never: the server has no GPUs");
}

TEST(Explain, HoldsNoControlBytes) {
  Server server = server_of({{}});
  server.gpus[0].id = "a\x1b[31m";
  const std::string text = words(request_of(1), server);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

TEST(Refusal, HasNames) {
  EXPECT_EQ(to_string(Refusal::none), "none");
  EXPECT_EQ(to_string(Refusal::free_floor), "free_floor");
  EXPECT_EQ(to_string(Refusal::never), "never");
}

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

TEST(WaitingQueue, IsFirstInFirstOutInEachClass) {
  WaitingQueue<int> queue;
  queue.push(1);
  queue.push(2);
  queue.push_recovery(10);
  queue.push(3);
  queue.push_recovery(11);
  EXPECT_EQ(queue.size(), 5U);
  EXPECT_EQ(queue.recovering(), 2U);
  std::vector<int> order;
  while (!queue.empty()) {
    const int next = queue.front();
    EXPECT_EQ(queue.pop(), next);
    order.push_back(next);
  }
  EXPECT_EQ(order, (std::vector<int>{10, 11, 1, 2, 3}));
}

TEST(WaitingQueue, AJobThatRecoversGoesBeforeOneThatIsNext) {
  WaitingQueue<int> queue;
  queue.push(1);
  EXPECT_EQ(queue.front(), 1);
  queue.push_recovery(10);
  EXPECT_EQ(queue.front(), 10);
}

TEST(WaitingQueue, IsAValueOfAnyJob) {
  WaitingQueue<std::string> queue;
  queue.push("a");
  WaitingQueue<std::string> copy = queue;
  queue.front() = "b";
  EXPECT_EQ(copy.pop(), "a");
  EXPECT_EQ(queue.pop(), "b");
  WaitingQueue<std::unique_ptr<int>> moved;
  moved.push(std::make_unique<int>(7));
  EXPECT_EQ(*moved.pop(), 7);
  EXPECT_TRUE(moved.empty());
}

}  // namespace
}  // namespace gpumem::place
