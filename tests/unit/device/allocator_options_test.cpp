#include "gpumem/device/allocator_options.hpp"

#include "expect.hpp"

namespace gpumem::device {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(AllocatorOptions, NothingIsTheDefault) {
  for (const char* text : {"", "  "}) {
    const auto options = parse_allocator_options(text);
    ASSERT_TRUE(succeeds(options));
    EXPECT_FALSE(options->expandable_segments);
    EXPECT_FALSE(options->max_split_size);
    EXPECT_EQ(options->max_non_split_rounding.count(), 20 * kMiB);
    EXPECT_EQ(options->roundup_power2_divisions[0], 0);
    EXPECT_EQ(options->garbage_collection_threshold, 0.0);
    EXPECT_EQ(*options, AllocatorOptions{});
  }
}

TEST(AllocatorOptions, ReadsAll) {
  const auto options = parse_allocator_options(
      "expandable_segments:True, max_split_size_mb:128,max_non_split_rounding_mb : 40,roundup_power2_divisions:4,"
      "garbage_collection_threshold:0.8,backend:native,pinned_num_register_threads:8,per_process_memory_fraction:0.5");
  ASSERT_TRUE(succeeds(options));
  EXPECT_TRUE(options->expandable_segments);
  ASSERT_TRUE(options->max_split_size);
  EXPECT_EQ(options->max_split_size->count(), 128 * kMiB);
  EXPECT_EQ(options->max_non_split_rounding.count(), 40 * kMiB);
  for (const std::int32_t divisions : options->roundup_power2_divisions) EXPECT_EQ(divisions, 4);
  EXPECT_EQ(options->garbage_collection_threshold, 0.8);
  EXPECT_EQ(options->memory_fraction, 0.5);
  EXPECT_TRUE(options->said);
}

TEST(AllocatorOptions, DivisionsMayDependOnTheSize) {
  // The example of PyTorch's notes.
  const auto options = parse_allocator_options("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  ASSERT_TRUE(succeeds(options));
  const std::array<std::int32_t, 16> expected = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
  EXPECT_EQ(options->roundup_power2_divisions, expected);
}

TEST(AllocatorOptions, SizesThatTheListPassesOverAreNotRounded) {
  const auto options = parse_allocator_options("roundup_power2_divisions:[2:4,16:8],expandable_segments:True");
  ASSERT_TRUE(succeeds(options));
  const std::array<std::int32_t, 16> expected = {4, 4, 0, 0, 8};
  EXPECT_EQ(options->roundup_power2_divisions, expected);
  EXPECT_TRUE(options->expandable_segments);
}

TEST(AllocatorOptions, WhatPyTorchRefusesIsAnError) {
  for (const char* text : {"expandable_segments",
                           "expandable_segments:",
                           "expandable_segments:true",
                           "max_split_size_mb:19",
                           "max_split_size_mb:x",
                           "max_split_size_mb:9223372036854775807",
                           "max_non_split_rounding_mb:-1",
                           "garbage_collection_threshold:0",
                           "garbage_collection_threshold:1",
                           "garbage_collection_threshold:nan",
                           "per_process_memory_fraction:0",
                           "per_process_memory_fraction:1.5",
                           "per_process_memory_fraction:nan",
                           "roundup_power2_divisions:3",
                           "roundup_power2_divisions:",
                           "roundup_power2_divisions:[256:3]",
                           "roundup_power2_divisions:[255:4]",
                           "roundup_power2_divisions:[256:4",
                           "roundup_power2_divisions:[256:4 512:4]",
                           "expandable_segments:True max_split_size_mb:128",
                           ":",
                           "[",
                           "frobnicate:1",
                           "backend:cudaMallocAsync"}) {
    EXPECT_TRUE(fails(parse_allocator_options(text), ErrorCode::invalid_argument, 0, "allocator options")) << text;
  }
}

TEST(AllocatorOptions, AnErrorNamesWhatIsKnown) {
  EXPECT_TRUE(fails(parse_allocator_options("expandable_segment:True"), ErrorCode::invalid_argument, 0,
                    "it knows expandable_segments"));
}

}  // namespace
}  // namespace gpumem::device
