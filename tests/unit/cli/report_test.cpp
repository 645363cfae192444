#include "report.hpp"

#include <gtest/gtest.h>

namespace gpumem::cli {
namespace {

TEST(Report, WhatThereIsForAJobIsItsShareOfTheGpuWhereItHasOne) {
  device::GpuProfile gpu;
  gpu.memory_bytes.value = std::int64_t{40} << 30;
  MemoryEstimate estimate;
  const std::string whole = room_of(estimate, gpu);
  EXPECT_EQ(whole, core::to_string(gpu.capacity()));
  estimate.limit = core::Bytes(std::int64_t{20} << 30);
  EXPECT_EQ(room_of(estimate, gpu), "20.0 GiB that the process may take");
  estimate.expected = core::Bytes(std::int64_t{10} << 30);
  EXPECT_DOUBLE_EQ(gauge_in(estimate, estimate.room_on(gpu.capacity())).expected, 0.5);
  EXPECT_LT(gauge_of(estimate, gpu).expected, 0.5);
}

}  // namespace
}  // namespace gpumem::cli
