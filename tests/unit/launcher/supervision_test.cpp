#include "supervision.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "queue_events.hpp"

namespace gpumem::launcher {
namespace {

using testing::join;
using testing::mib;
using testing::start;

/// What is seen of a job with a promise of 8,000 MiB on a GPU of 40,000, which this process is.
SeenUse seen_with(std::int64_t own_mib, std::int64_t used_mib) {
  Ledger ledger;
  EXPECT_TRUE(ledger.apply({0, 0.0, Opened{}}));
  EXPECT_TRUE(ledger.apply(join(1, 8000)));
  const std::vector<Promise> promises = {{"GPU-0", mib(8000)}};
  Event starts = start(1, promises);
  std::get<Started>(starts.what).leader = process_of(getpid());
  EXPECT_TRUE(ledger.apply(starts));
  Gpus gpus;
  monitor::LiveGpu live;
  live.uuid = "GPU-0";
  live.total = mib(40'000);
  live.used = mib(used_mib);
  live.processes = {{getpid(), mib(own_mib)}};
  gpus.machine.gpus = {live};
  place::ServerGpu gpu;
  gpu.id = "GPU-0";
  gpu.total = mib(40'000);
  gpus.server.gpus = {gpu};
  SeenUse seen;
  take_sample(gpus, ledger, 1, promises, seen);
  return seen;
}

TEST(Supervision, AGpuIsFilledByAJobThatHasOutgrownItsPromise) {
  EXPECT_TRUE(seen_with(39'500, 39'500).filled);
  EXPECT_TRUE(seen_with(9000, 39'500).filled) << "others took the rest";
  EXPECT_FALSE(seen_with(39'000, 39'000).filled) << "there was room";
  EXPECT_FALSE(seen_with(8000, 39'500).filled) << "it had what it was promised";
}

TEST(Supervision, WhatEndsAProgramFromOutsideIsNoFailureOfItsOwn) {
  for (const int code : {1, 2, 125, 134}) EXPECT_TRUE(failed_by_itself(code)) << code;
  for (const int code : {0, 126, 127, 130, 137, 139, 143}) EXPECT_FALSE(failed_by_itself(code)) << code;
}

TEST(Supervision, OutOfMemoryTakesAFailureAndAReason) {
  JobEnd end;
  end.said_no_memory = true;
  EXPECT_FALSE(end.out_of_memory()) << "it ended well";
  end.exit_code = 1;
  EXPECT_TRUE(end.out_of_memory());
  end.cancelled = true;
  EXPECT_FALSE(end.out_of_memory());
  end.cancelled = false;
  end.asked_to_end = true;
  EXPECT_FALSE(end.out_of_memory()) << "somebody ended it";
  end = {};
  end.exit_code = 1;
  EXPECT_FALSE(end.out_of_memory());
  end.filled_gpu = true;
  EXPECT_TRUE(end.out_of_memory());
}

}  // namespace
}  // namespace gpumem::launcher
