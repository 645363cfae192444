#include "gpumem/device/caching_allocator.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace gpumem::device {
namespace {

using core::Bytes;

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

BlockId taken(CachingAllocator& allocator, std::int64_t bytes, std::uint32_t stream = 0) {
  const auto block = allocator.allocate(bytes, stream);
  EXPECT_TRUE(block.has_value()) << bytes;
  return block.value_or(kNoBlock);
}

AllocatorOptions with_capacity(std::int64_t bytes) {
  AllocatorOptions options;
  options.capacity = Bytes(bytes);
  return options;
}

AllocatorOptions expandable() {
  AllocatorOptions options;
  options.expandable_segments = true;
  return options;
}

/// "512+ 1536- | ...": sizes of blocks in KiB... in bytes, + allocated, - free, ? unmapped; segments by address.
std::string layout(const CachingAllocator& allocator) {
  std::string text;
  for (const SegmentView& segment : allocator.snapshot()) {
    if (!text.empty()) text += " | ";
    for (std::size_t i = 0; i < segment.blocks.size(); ++i) {
      const BlockView& block = segment.blocks[i];
      const char state = block.state == BlockState::allocated ? '+' : block.state == BlockState::free ? '-' : '?';
      if (i > 0) text += ' ';
      if (state == '?') {
        text += state;
        continue;
      }
      const bool whole = block.size % kMiB == 0;
      text += whole ? std::to_string(block.size / kMiB) + "M" : std::to_string(block.size);
      text += state;
    }
  }
  return text;
}

TEST(CachingAllocator, AllocatesAndFreesAtOnceAsOneByOne) {
  for (const AllocatorOptions& options : {AllocatorOptions(), expandable(), with_capacity(30 * kMiB)}) {
    CachingAllocator at_once(options);
    CachingAllocator one_by_one(options);
    for (CachingAllocator* allocator : {&at_once, &one_by_one}) {
      const BlockId first = taken(*allocator, 7 * kMiB);
      (void)taken(*allocator, 3 * kMiB);
      allocator->free(first);
    }
    for (const std::int64_t bytes :
         {2 * kMiB, 7 * kMiB - 100, std::int64_t{700}, 9 * kMiB, 100 * kMiB, std::int64_t{0}}) {
      const auto moment = at_once.allocate_and_free(bytes);
      const auto block = one_by_one.allocate(bytes);
      ASSERT_EQ(moment.has_value(), block.has_value()) << bytes;
      if (block) {
        EXPECT_EQ(*moment, one_by_one.size_of(*block)) << bytes;
      }
      if (block) one_by_one.free(*block);
      EXPECT_EQ(layout(at_once), layout(one_by_one)) << bytes;
      EXPECT_EQ(at_once.allocated(), one_by_one.allocated());
      EXPECT_EQ(at_once.peak_allocated(), one_by_one.peak_allocated());
      EXPECT_EQ(at_once.peak_requested(), one_by_one.peak_requested());
      EXPECT_EQ(at_once.peak_reserved(), one_by_one.peak_reserved());
    }
  }
}

TEST(CachingAllocator, BeginsEmpty) {
  const CachingAllocator allocator;
  EXPECT_EQ(allocator.allocated(), 0);
  EXPECT_EQ(allocator.reserved(), 0);
  EXPECT_EQ(allocator.segments(), 0);
  EXPECT_TRUE(allocator.snapshot().empty());
}

TEST(CachingAllocator, ZeroBytesTakeNothing) {
  CachingAllocator allocator;
  EXPECT_EQ(allocator.allocate(0), kNoBlock);
  EXPECT_EQ(allocator.allocate(-1), kNoBlock);
  allocator.free(kNoBlock);
  EXPECT_EQ(allocator.reserved(), 0);
}

TEST(CachingAllocator, RoundsRequestsUpTo512Bytes) {
  for (const auto& [bytes, size] :
       {std::pair<std::int64_t, std::int64_t>{1, 512}, {512, 512}, {513, 1024}, {1024, 1024}, {4000, 4096}}) {
    CachingAllocator allocator;
    const BlockId block = taken(allocator, bytes);
    EXPECT_EQ(allocator.size_of(block), size);
    EXPECT_EQ(allocator.allocated(), size);
    EXPECT_EQ(allocator.requested(), bytes);
  }
}

TEST(CachingAllocator, SegmentsAreAsLargeAsTheRequestSays) {
  struct Case {
    std::int64_t bytes;
    std::int64_t reserved;
  };
  for (const auto& [bytes, reserved] :
       {Case{1, 2 * kMiB}, Case{kMiB, 2 * kMiB}, Case{kMiB + 1, 20 * kMiB}, Case{10 * kMiB - 512, 20 * kMiB},
        Case{10 * kMiB - 511, 10 * kMiB}, Case{10 * kMiB + 1, 12 * kMiB}, Case{33 * kMiB, 34 * kMiB}}) {
    CachingAllocator allocator;
    (void)taken(allocator, bytes);
    EXPECT_EQ(allocator.reserved(), reserved) << bytes;
    EXPECT_EQ(allocator.segments(), 1);
  }
}

TEST(CachingAllocator, SmallRemaindersOf512BytesStayUsable) {
  CachingAllocator allocator;
  (void)taken(allocator, kMiB);
  (void)taken(allocator, kMiB - 512);
  EXPECT_EQ(layout(allocator), "1M+ 1048064+ 512-");
  (void)taken(allocator, 1);
  EXPECT_EQ(layout(allocator), "1M+ 1048064+ 512+");
}

TEST(CachingAllocator, LargeRemaindersAreSplitOffAboveOneMebibyteOnly) {
  CachingAllocator allocator;
  (void)taken(allocator, 11 * kMiB);  // 12 MiB reserved, 1 MiB too much: kept
  EXPECT_EQ(layout(allocator), "12M+");
  EXPECT_EQ(allocator.allocated(), 12 * kMiB);
  EXPECT_EQ(allocator.requested(), 11 * kMiB);
  (void)taken(allocator, 11 * kMiB - 512);  // 1 MiB + 512 B too much
  EXPECT_EQ(layout(allocator), "12M+ | 11533824+ 1049088-");
}

TEST(CachingAllocator, TheSmallestBlockThatFitsIsTaken) {
  CachingAllocator allocator;
  const BlockId wide = taken(allocator, 40 * kMiB);
  const BlockId narrow = taken(allocator, 30 * kMiB);
  allocator.free(wide);
  allocator.free(narrow);
  (void)taken(allocator, 28 * kMiB);
  EXPECT_EQ(layout(allocator), "40M- | 28M+ 2M-");
}

TEST(CachingAllocator, TheLowestAddressIsTakenAmongEquals) {
  CachingAllocator allocator;
  const BlockId low = taken(allocator, 30 * kMiB);
  const BlockId high = taken(allocator, 30 * kMiB);
  allocator.free(high);
  allocator.free(low);
  (void)taken(allocator, 30 * kMiB);
  EXPECT_EQ(layout(allocator), "30M+ | 30M-");
}

TEST(CachingAllocator, FreedNeighboursMerge) {
  CachingAllocator allocator;
  const BlockId a = taken(allocator, 4 * kMiB);
  const BlockId b = taken(allocator, 4 * kMiB);
  const BlockId c = taken(allocator, 4 * kMiB);
  EXPECT_EQ(layout(allocator), "4M+ 4M+ 4M+ 8M-");
  allocator.free(a);
  EXPECT_EQ(layout(allocator), "4M- 4M+ 4M+ 8M-");
  allocator.free(c);
  EXPECT_EQ(layout(allocator), "4M- 4M+ 12M-");
  allocator.free(b);
  EXPECT_EQ(layout(allocator), "20M-");
  EXPECT_EQ(allocator.allocated(), 0);
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
}

TEST(CachingAllocator, FreeingTwiceIsLeftAlone) {
  CachingAllocator allocator;
  const BlockId block = taken(allocator, 4 * kMiB);
  allocator.free(block);
  allocator.free(block);
  allocator.free(12345);
  EXPECT_EQ(layout(allocator), "20M-");
}

TEST(CachingAllocator, PoolsDoNotShare) {
  CachingAllocator allocator;
  allocator.free(taken(allocator, 20 * kMiB));
  (void)taken(allocator, 100);
  EXPECT_EQ(layout(allocator), "20M- | 512+ 2096640-");
}

TEST(CachingAllocator, StreamsDoNotShare) {
  CachingAllocator allocator;
  allocator.free(taken(allocator, 30 * kMiB));
  (void)taken(allocator, 30 * kMiB, 7);
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  (void)taken(allocator, 30 * kMiB, 0);
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  const auto segments = allocator.snapshot();
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].stream, 0U);
  EXPECT_EQ(segments[1].stream, 7U);
  EXPECT_FALSE(segments[0].small);
}

TEST(CachingAllocator, PeaksStayUntilTheyAreReset) {
  CachingAllocator allocator;
  allocator.free(taken(allocator, 30 * kMiB));
  allocator.empty_cache();
  EXPECT_EQ(allocator.reserved(), 0);
  EXPECT_EQ(allocator.segments(), 0);
  EXPECT_EQ(allocator.peak_allocated(), 30 * kMiB);
  EXPECT_EQ(allocator.peak_reserved(), 30 * kMiB);
  EXPECT_EQ(allocator.peak_requested(), 30 * kMiB);
  allocator.reset_peaks();
  EXPECT_EQ(allocator.peak_allocated(), 0);
  EXPECT_EQ(allocator.peak_reserved(), 0);
  EXPECT_EQ(allocator.peak_requested(), 0);
}

TEST(CachingAllocator, EmptyCacheKeepsSegmentsInUse) {
  CachingAllocator allocator;
  (void)taken(allocator, 4 * kMiB);
  allocator.free(taken(allocator, 30 * kMiB));
  allocator.empty_cache();
  EXPECT_EQ(layout(allocator), "4M+ 16M-");
  EXPECT_EQ(allocator.retries(), 0);
}

TEST(CachingAllocator, FullCapacityReleasesCachedSegmentsAndTriesAgain) {
  CachingAllocator allocator(with_capacity(60 * kMiB));
  allocator.free(taken(allocator, 30 * kMiB));
  (void)taken(allocator, 100);
  (void)taken(allocator, 40 * kMiB);  // 32 + 40 MiB do not fit: the cached 30 MiB go
  EXPECT_EQ(allocator.retries(), 1);
  EXPECT_EQ(allocator.reserved(), 42 * kMiB);
  EXPECT_EQ(allocator.peak_reserved(), 42 * kMiB);
}

TEST(CachingAllocator, OutOfMemoryLeavesItUsable) {
  CachingAllocator allocator(with_capacity(60 * kMiB));
  const BlockId held = taken(allocator, 30 * kMiB);
  EXPECT_EQ(allocator.allocate(40 * kMiB), std::nullopt);
  EXPECT_EQ(allocator.allocate(INT64_MAX), std::nullopt);
  EXPECT_EQ(layout(allocator), "30M+");
  EXPECT_EQ(allocator.retries(), 1);
  allocator.free(held);
  EXPECT_EQ(allocator.size_of(taken(allocator, 60 * kMiB)), 60 * kMiB);
}

TEST(CachingAllocator, WithoutACapacityItEndsBeyondAnyMachine) {
  CachingAllocator allocator;
  EXPECT_TRUE(allocator.allocate(std::int64_t{1} << 55).has_value());
  EXPECT_EQ(allocator.allocate(std::int64_t{1} << 56), std::nullopt);
}

TEST(CachingAllocator, RequestsRoundUpToDivisionsOfAPowerOfTwo) {
  AllocatorOptions options;
  options.roundup_power2_divisions.fill(4);
  CachingAllocator allocator(options);
  // PyTorch's notes: with 4 divisions 1200 lies between 1024 and 1280; but up to 512 B x 4 nothing is rounded so.
  EXPECT_EQ(allocator.size_of(taken(allocator, 1200)), 1536);
  EXPECT_EQ(allocator.size_of(taken(allocator, 120 * kKiB)), 128 * kKiB);
  EXPECT_EQ(allocator.size_of(taken(allocator, 128 * kKiB)), 128 * kKiB);
  EXPECT_EQ(allocator.size_of(taken(allocator, 128 * kKiB + 1)), 160 * kKiB);
  EXPECT_EQ(allocator.size_of(taken(allocator, 1200 * kMiB)), 1280 * kMiB);
}

TEST(CachingAllocator, EachSizeHasItsOwnDivisions) {
  AllocatorOptions options;
  options.roundup_power2_divisions[8] = 2;   // 256 to 511 MiB
  options.roundup_power2_divisions[15] = 1;  // 32 GiB and more: off
  CachingAllocator allocator(options);
  EXPECT_EQ(allocator.size_of(taken(allocator, 255 * kMiB)), 256 * kMiB);  // kept: 1 MiB is not split off
  EXPECT_EQ(allocator.size_of(taken(allocator, 257 * kMiB)), 384 * kMiB);
  EXPECT_EQ(allocator.size_of(taken(allocator, 514 * kMiB)), 514 * kMiB);
  EXPECT_EQ(allocator.size_of(taken(allocator, 70000 * kMiB)), 70000 * kMiB);
}

AllocatorOptions with_max_split(std::int64_t capacity) {
  AllocatorOptions options = with_capacity(capacity);
  options.max_split_size = Bytes(100 * kMiB);
  return options;
}

TEST(CachingAllocator, OversizeBlocksServeOversizeRequestsOnly) {
  CachingAllocator allocator(with_max_split(1000 * kMiB));
  allocator.free(taken(allocator, 130 * kMiB));
  (void)taken(allocator, 50 * kMiB);  // not out of the 130 MiB
  EXPECT_EQ(layout(allocator), "130M- | 50M+");
  (void)taken(allocator, 110 * kMiB);  // would leave 20 MiB unused: too much
  EXPECT_EQ(layout(allocator), "130M- | 50M+ | 110M+");
  (void)taken(allocator, 112 * kMiB);  // leaves 18 MiB, unsplit
  EXPECT_EQ(layout(allocator), "130M+ | 50M+ | 110M+");
  EXPECT_EQ(allocator.requested(), 272 * kMiB);
}

TEST(CachingAllocator, OversizeSegmentsGoFirst) {
  CachingAllocator allocator(with_max_split(500 * kMiB));
  const BlockId a = taken(allocator, 100 * kMiB);
  const BlockId b = taken(allocator, 120 * kMiB);
  const BlockId c = taken(allocator, 200 * kMiB);
  const BlockId d = taken(allocator, 60 * kMiB);
  for (const BlockId block : {a, b, c, d}) allocator.free(block);
  const BlockId wide = taken(allocator, 150 * kMiB);  // the smallest that is large enough goes
  EXPECT_EQ(layout(allocator), "100M- | 120M- | 60M- | 150M+");
  allocator.free(wide);
  (void)taken(allocator, 180 * kMiB);  // none is: the largest go until there is enough
  EXPECT_EQ(layout(allocator), "100M- | 60M- | 180M+");
  EXPECT_EQ(allocator.retries(), 0);
  (void)taken(allocator, 310 * kMiB);  // the rest does not help: all cached ones go
  EXPECT_EQ(layout(allocator), "180M+ | 310M+");
  EXPECT_EQ(allocator.retries(), 1);
}

TEST(CachingAllocator, GarbageOfMoreThanAverageAgeIsCollected) {
  AllocatorOptions options = with_capacity(1000 * kMiB);
  options.garbage_collection_threshold = 0.1;
  CachingAllocator allocator(options);
  const BlockId old = taken(allocator, 60 * kMiB);
  const BlockId young = taken(allocator, 40 * kMiB);
  allocator.free(old);
  allocator.free(taken(allocator, 60 * kMiB));  // searches: 3, of the freed: at 3
  allocator.free(young);
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
  (void)taken(allocator, 30 * kMiB);  // reused at search 4: 30 of the 40 MiB
  EXPECT_EQ(layout(allocator), "60M- | 30M+ 10M-");
  (void)taken(allocator, 80 * kMiB);  // reserved is not above 100 MiB: nothing is collected
  EXPECT_EQ(layout(allocator), "60M- | 30M+ 10M- | 80M+");
  (void)taken(allocator, 90 * kMiB);  // 180 MiB are: the 60 MiB go, the split segment stays
  EXPECT_EQ(layout(allocator), "30M+ 10M- | 80M+ | 90M+");
  EXPECT_EQ(allocator.retries(), 0);
}

TEST(ExpandableSegments, GrowByPages) {
  CachingAllocator allocator(expandable());
  (void)taken(allocator, 100);
  EXPECT_EQ(layout(allocator), "512+ 2096640- ?");
  (void)taken(allocator, 30 * kMiB);
  EXPECT_EQ(layout(allocator), "512+ 2096640- ? | 30M+ 10M- ?");
  EXPECT_EQ(allocator.reserved(), 42 * kMiB);
  EXPECT_EQ(allocator.segments(), 2);
  (void)taken(allocator, 25 * kMiB);  // 10 MiB are there, one page of 20 MiB is mapped
  EXPECT_EQ(layout(allocator), "512+ 2096640- ? | 30M+ 25M+ 5M- ?");
  EXPECT_EQ(allocator.reserved(), 62 * kMiB);
  (void)taken(allocator, 5 * kMiB - 512);  // remainders of 512 B are split off in the large pool too
  EXPECT_EQ(layout(allocator), "512+ 2096640- ? | 30M+ 25M+ 5242368+ 512- ?");
}

TEST(ExpandableSegments, TheGrowingEndIsUsedLast) {
  CachingAllocator allocator(expandable());
  const BlockId first = taken(allocator, 15 * kMiB);
  (void)taken(allocator, 10 * kMiB);
  allocator.free(first);
  EXPECT_EQ(layout(allocator), "15M- 10M+ 15M- ?");
  (void)taken(allocator, 2 * kMiB);
  EXPECT_EQ(layout(allocator), "2M+ 13M- 10M+ 15M- ?");
  (void)taken(allocator, 14 * kMiB);
  EXPECT_EQ(layout(allocator), "2M+ 13M- 10M+ 14M+ 1M- ?");
}

TEST(ExpandableSegments, TheEndIsPassedOverForALargerBlockInTheMiddle) {
  CachingAllocator allocator(expandable());
  const BlockId first = taken(allocator, 18 * kMiB);
  (void)taken(allocator, 10 * kMiB);
  allocator.free(first);
  EXPECT_EQ(layout(allocator), "18M- 10M+ 12M- ?");
  (void)taken(allocator, 11 * kMiB);  // 12 MiB fit best, but can grow
  EXPECT_EQ(layout(allocator), "11M+ 7M- 10M+ 12M- ?");
}

TEST(ExpandableSegments, ReleaseWhollyFreePages) {
  CachingAllocator allocator(expandable());
  const BlockId a = taken(allocator, 30 * kMiB);
  const BlockId b = taken(allocator, 50 * kMiB);
  (void)taken(allocator, 15 * kMiB);
  EXPECT_EQ(layout(allocator), "30M+ 50M+ 15M+ 5M- ?");
  allocator.free(b);
  allocator.empty_cache();  // 40 to 80 MiB
  EXPECT_EQ(layout(allocator), "30M+ 10M- ? 15M+ 5M- ?");
  EXPECT_EQ(allocator.reserved(), 60 * kMiB);
  EXPECT_EQ(allocator.segments(), 1);
  (void)taken(allocator, 45 * kMiB);  // the hole is filled first: 10 MiB and two pages
  EXPECT_EQ(layout(allocator), "30M+ 45M+ 5M- 15M+ 5M- ?");
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
  allocator.free(a);
  allocator.empty_cache();
  EXPECT_EQ(layout(allocator), "? 10M- 45M+ 5M- 15M+ 5M- ?");
}

TEST(ExpandableSegments, EndWithTheirLastPage) {
  CachingAllocator allocator(expandable());
  allocator.free(taken(allocator, 30 * kMiB));
  allocator.empty_cache();
  EXPECT_EQ(allocator.reserved(), 0);
  EXPECT_EQ(allocator.segments(), 0);
  EXPECT_EQ(layout(allocator), "");
}

TEST(ExpandableSegments, PagesOfOneStreamGoToAnotherWhenMemoryIsOut) {
  AllocatorOptions options = expandable();
  options.capacity = Bytes(100 * kMiB);
  CachingAllocator allocator(options);
  const BlockId held = taken(allocator, 10 * kMiB, 1);
  allocator.free(taken(allocator, 70 * kMiB, 1));
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
  EXPECT_EQ(allocator.allocate(90 * kMiB, 2), std::nullopt);
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  (void)taken(allocator, 80 * kMiB, 2);
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
  EXPECT_EQ(allocator.retries(), 1);
  allocator.free(held);
}

}  // namespace
}  // namespace gpumem::device
