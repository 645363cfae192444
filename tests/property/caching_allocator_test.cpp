// What holds for every sequence of requests and frees: random ones, whose seed is printed on failure, against the
// invariants and against a second implementation that is as plain as can be.
#include "gpumem/device/caching_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpumem::device {
namespace {

using core::Bytes;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::int64_t up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// The rules once more, with every question answered by looking at every block.
class PlainAllocator {
 public:
  struct Piece {
    std::int64_t size;
    BlockState state;
    std::int64_t requested;
    std::int64_t freed_at;
    std::uint64_t name;
  };
  struct Segment {
    std::uint32_t stream;
    bool small;
    std::vector<Piece> pieces;
  };
  /// A piece by its place.
  struct At {
    std::size_t segment = SIZE_MAX;
    std::size_t piece = 0;
    explicit operator bool() const { return segment != SIZE_MAX; }
  };

  explicit PlainAllocator(const AllocatorOptions& options) : options_(options) {}

  std::vector<Segment> segments;
  std::int64_t retries = 0;

  bool allocate(std::uint64_t name, std::int64_t bytes, std::uint32_t stream) {
    const std::int64_t size = rounded(bytes);
    const bool small = size <= kMiB;
    if (!small) ++searches_;
    At at = search(size, small, stream);
    if (!at) {
      collect();
      at = extend(size, small, stream);
      if (!at && release_oversize(size, small, stream)) at = extend(size, small, stream);
      if (!at) {
        release_all();
        ++retries;
        at = extend(size, small, stream);
      }
    }
    if (!at) return false;
    const std::int64_t rest = piece(at).size - size;
    const bool fine = small || options_.expandable_segments;
    if (fine ? rest >= 512 : rest > kMiB && size < max_split()) cut(at, size, BlockState::free);
    piece(at).state = BlockState::allocated;
    piece(at).requested = bytes;
    piece(at).name = name;
    return true;
  }

  void free(std::uint64_t name) {
    for (std::size_t s = 0; s < segments.size(); ++s) {
      for (std::size_t p = 0; p < segments[s].pieces.size(); ++p) {
        Piece& found = segments[s].pieces[p];
        if (found.state != BlockState::allocated || found.name != name) continue;
        found = {found.size, BlockState::free, 0, searches_, 0};
        merge(s);
        return;
      }
    }
    FAIL() << "nothing is named " << name;
  }

  void release_all() {
    for (std::size_t s = segments.size(); s-- > 0;) {
      // An expandable segment that never had a page stays.
      const bool gone = options_.expandable_segments ? unmap_free_pages(s) : wholly_free(segments[s]);
      if (gone) segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(s));
    }
  }

  [[nodiscard]] std::int64_t sum(bool reserved) const {
    std::int64_t bytes = 0;
    for (const Segment& segment : segments) {
      for (const Piece& one : segment.pieces) {
        if (one.state == BlockState::allocated || (reserved && one.state == BlockState::free)) bytes += one.size;
      }
    }
    return bytes;
  }

 private:
  Piece& piece(At at) { return segments[at.segment].pieces[at.piece]; }

  [[nodiscard]] std::int64_t max_split() const {
    return options_.max_split_size ? options_.max_split_size->count() : INT64_MAX;
  }
  [[nodiscard]] std::int64_t room() const {
    return (options_.capacity ? options_.capacity->count() : std::int64_t{1} << 56) - sum(true);
  }

  [[nodiscard]] std::int64_t rounded(std::int64_t bytes) const {
    std::size_t index = 0;
    while (index < 15 && bytes >= (kMiB << (index + 1))) ++index;
    const std::int64_t divisions = options_.roundup_power2_divisions[index];
    if (divisions <= 1 || bytes <= 512 * divisions) return up(bytes, 512);
    std::int64_t power = 512;
    while (power * 2 <= bytes) power *= 2;
    return up(bytes, power / divisions);
  }

  static bool wholly_free(const Segment& segment) {
    return segment.pieces.size() == 1 && segment.pieces[0].state == BlockState::free;
  }

  /// Pieces of one pool that are free, by size and then by address.
  std::vector<At> free_pieces(bool small, std::uint32_t stream) {
    std::vector<At> all;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (segments[s].small != small || segments[s].stream != stream) continue;
      for (std::size_t p = 0; p < segments[s].pieces.size(); ++p) {
        if (segments[s].pieces[p].state == BlockState::free) all.push_back({s, p});
      }
    }
    std::stable_sort(all.begin(), all.end(), [&](At a, At b) { return piece(a).size < piece(b).size; });
    return all;
  }

  std::int64_t growable(At at) {
    const auto& pieces = segments[at.segment].pieces;
    const bool grows = at.piece + 1 < pieces.size() && pieces[at.piece + 1].state == BlockState::unmapped;
    return pieces[at.piece].size + (grows ? pieces[at.piece + 1].size : 0);
  }

  At search(std::int64_t size, bool small, std::uint32_t stream) {
    const std::vector<At> all = free_pieces(small, stream);
    auto best = std::find_if(all.begin(), all.end(), [&](At at) { return piece(at).size >= size; });
    if (best == all.end()) return {};
    if (options_.expandable_segments) {
      while (best + 1 != all.end() && growable(best[1]) < growable(*best)) ++best;
    }
    const std::int64_t found = piece(*best).size;
    if (size < max_split() && found >= max_split()) return {};
    if (size >= max_split() && found >= size + options_.max_non_split_rounding.count()) return {};
    return *best;
  }

  void cut(At at, std::int64_t size, BlockState rest_state) {
    const Piece rest = {piece(at).size - size, rest_state, 0, searches_, 0};
    piece(at).size = size;
    auto& pieces = segments[at.segment].pieces;
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at.piece) + 1, rest);
  }

  /// Makes neighbours of one state that is not allocated one.
  void merge(std::size_t segment) {
    auto& pieces = segments[segment].pieces;
    for (std::size_t p = 0; p + 1 < pieces.size();) {
      if (pieces[p].state == BlockState::allocated || pieces[p].state != pieces[p + 1].state) {
        ++p;
        continue;
      }
      pieces[p].size += pieces[p + 1].size;
      pieces[p].freed_at = searches_;
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(p) + 1);
    }
  }

  At extend(std::int64_t size, bool small, std::uint32_t stream) {
    if (options_.expandable_segments) return grow(size, small, stream);
    const std::int64_t bytes = small ? 2 * kMiB : size < 10 * kMiB ? 20 * kMiB : up(size, 2 * kMiB);
    if (bytes > room()) return {};
    segments.push_back({stream, small, {{bytes, BlockState::free, 0, searches_, 0}}});
    return {segments.size() - 1, 0};
  }

  bool release_oversize(std::int64_t size, bool small, std::uint32_t stream) {
    if (!options_.max_split_size || options_.expandable_segments) return false;
    const std::int64_t wanted = std::max(size, max_split());
    std::vector<At> all = free_pieces(small, stream);
    std::vector<std::size_t> gone;
    std::int64_t bytes = 0;
    const auto one = std::find_if(all.begin(), all.end(), [&](At at) { return piece(at).size >= wanted; });
    if (one != all.end()) {
      gone = {one->segment};
      bytes = wanted;
    }
    for (; bytes < wanted && !all.empty() && piece(all.back()).size >= max_split(); all.pop_back()) {
      bytes += piece(all.back()).size;
      gone.push_back(all.back().segment);
    }
    std::sort(gone.rbegin(), gone.rend());
    for (const std::size_t s : gone) segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(s));
    return bytes >= wanted;
  }

  void collect() {
    if (options_.garbage_collection_threshold <= 0.0 || options_.expandable_segments) return;
    const auto limit = static_cast<std::int64_t>(options_.garbage_collection_threshold *
                                                 static_cast<double>(options_.capacity->count()));
    while (sum(true) > limit) {
      double age = 0.0;
      double count = 0.0;
      for (const Segment& segment : segments) {
        if (segment.small || !wholly_free(segment)) continue;
        age += static_cast<double>(searches_ - segment.pieces[0].freed_at);
        ++count;
      }
      if (count == 0.0) return;
      std::erase_if(segments, [&](const Segment& segment) {
        return !segment.small && wholly_free(segment) &&
               static_cast<double>(searches_ - segment.pieces[0].freed_at) >= age / count;
      });
    }
  }

  At grow(std::int64_t size, bool small, std::uint32_t stream) {
    const std::int64_t page = small ? 2 * kMiB : 20 * kMiB;
    for (int again = 0; again < 2; ++again) {
      for (std::size_t s = 0; s < segments.size(); ++s) {
        if (segments[s].small != small || segments[s].stream != stream) continue;
        for (std::size_t p = 0; p < segments[s].pieces.size(); ++p) {
          const auto& pieces = segments[s].pieces;
          const bool hole = pieces[p].state == BlockState::unmapped;
          const bool before = pieces[p].state == BlockState::free && p + 1 < pieces.size() &&
                              pieces[p + 1].state == BlockState::unmapped;
          std::int64_t there = 0;
          for (std::size_t q = p; q < pieces.size() && pieces[q].state != BlockState::allocated; ++q) {
            there += pieces[q].size;
          }
          if ((hole || before) && there >= size) return map_at({s, p}, size, page);
        }
      }
      const std::int64_t range =
          up(options_.capacity ? options_.capacity->count() / 8 * 9 : std::int64_t{1} << 46, page);
      if (range < size) return {};
      segments.push_back({stream, small, {{range, BlockState::unmapped, 0, 0, 0}}});
    }
    return {};
  }

  At map_at(At at, std::int64_t size, std::int64_t page) {
    while (piece(at).state == BlockState::unmapped || piece(at).size < size) {
      At hole = at;
      if (piece(at).state == BlockState::free) ++hole.piece;
      const std::int64_t there = piece(at).state == BlockState::free ? piece(at).size : 0;
      const std::int64_t bytes = up(std::min(size - there, piece(hole).size), page);
      if (bytes > room()) return {};
      if (bytes < piece(hole).size) cut(hole, bytes, BlockState::unmapped);
      piece(hole).state = BlockState::free;
      merge(at.segment);
    }
    return at;
  }

  /// True if that leaves nothing of it.
  bool unmap_free_pages(std::size_t segment) {
    bool any = false;
    const std::int64_t page = segments[segment].small ? 2 * kMiB : 20 * kMiB;
    std::int64_t address = 0;
    for (std::size_t p = 0; p < segments[segment].pieces.size(); ++p) {
      const Piece one = segments[segment].pieces[p];
      const std::int64_t begin = up(address, page);
      const std::int64_t end = (address + one.size) / page * page;
      address += one.size;
      if (one.state != BlockState::free || begin >= end) continue;
      if (end < address) cut({segment, p}, one.size - (address - end), BlockState::free);
      if (begin > address - one.size) {
        cut({segment, p}, begin - (address - one.size), BlockState::free);
        ++p;
      }
      segments[segment].pieces[p].state = BlockState::unmapped;
      any = true;
      if (end < address) ++p;
    }
    // Free pieces next to unmapped ones stay apart; unmapped ones become one.
    merge(segment);
    return any && segments[segment].pieces.size() == 1;
  }

  AllocatorOptions options_;
  std::int64_t searches_ = 0;
};

void expect_sound(const CachingAllocator& allocator) {
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::int64_t end_of_last = 0;
  for (const SegmentView& segment : allocator.snapshot()) {
    std::int64_t address = segment.blocks.front().address;
    ASSERT_GE(address, end_of_last) << "segments overlap";
    BlockState last = BlockState::allocated;
    for (const BlockView& block : segment.blocks) {
      ASSERT_EQ(block.address, address) << "blocks lie side by side";
      ASSERT_GT(block.size, 0);
      ASSERT_EQ(block.size % 512, 0);
      ASSERT_TRUE(block.state == BlockState::allocated || block.state != last) << "equal neighbours are merged";
      ASSERT_TRUE(block.state != BlockState::unmapped || segment.expandable);
      if (block.state == BlockState::allocated) allocated += block.size;
      if (block.state != BlockState::unmapped) reserved += block.size;
      last = block.state;
      address += block.size;
    }
    end_of_last = address;
    ASSERT_TRUE(segment.expandable || (address - segment.blocks.front().address) % (2 * kMiB) == 0);
  }
  ASSERT_EQ(allocator.allocated(), allocated);
  ASSERT_EQ(allocator.reserved(), reserved);
  ASSERT_LE(allocator.allocated(), allocator.peak_allocated());
  ASSERT_LE(allocator.reserved(), allocator.peak_reserved());
  ASSERT_LE(allocator.requested(), allocator.allocated());
}

void expect_same(const CachingAllocator& allocator, const PlainAllocator& plain) {
  const std::vector<SegmentView> segments = allocator.snapshot();
  ASSERT_EQ(segments.size(), plain.segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    ASSERT_EQ(segments[s].stream, plain.segments[s].stream);
    ASSERT_EQ(segments[s].small, plain.segments[s].small);
    ASSERT_EQ(segments[s].blocks.size(), plain.segments[s].pieces.size());
    for (std::size_t p = 0; p < segments[s].blocks.size(); ++p) {
      ASSERT_EQ(segments[s].blocks[p].size, plain.segments[s].pieces[p].size);
      ASSERT_EQ(segments[s].blocks[p].state, plain.segments[s].pieces[p].state);
      ASSERT_EQ(segments[s].blocks[p].requested, plain.segments[s].pieces[p].requested);
    }
  }
  ASSERT_EQ(allocator.retries(), plain.retries);
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool chance(int percent) { return number(1, 100) <= percent; }

  /// Of any order of magnitude, often a round one, often one that came before.
  std::int64_t bytes() {
    if (!seen_.empty() && chance(50)) return seen_[static_cast<std::size_t>(number(0, std::ssize(seen_) - 1))];
    const std::int64_t power = std::int64_t{1} << number(0, 26);
    seen_.push_back(chance(40) ? power : number(power, 2 * power));
    return seen_.back();
  }

  AllocatorOptions options() {
    AllocatorOptions options;
    if (chance(60)) options.capacity = Bytes(number(20, 800) * kMiB);
    if (chance(40)) options.max_split_size = Bytes(number(20, 100) * kMiB);
    if (chance(30)) options.max_non_split_rounding = Bytes(number(20, 60) * kMiB);
    if (chance(30)) options.roundup_power2_divisions.fill(1 << number(0, 4));
    if (options.capacity && chance(40)) {
      options.garbage_collection_threshold = static_cast<double>(number(1, 9)) / 10.0;
    }
    options.expandable_segments = chance(40);
    return options;
  }

 private:
  std::mt19937 engine_;
  std::vector<std::int64_t> seen_;
};

struct Live {
  BlockId block;
  std::uint64_t name;
};

void run(unsigned seed, int events) {
  Random random(seed);
  const AllocatorOptions options = random.options();
  CachingAllocator allocator(options);
  PlainAllocator plain(options);
  std::vector<Live> live;
  std::uint64_t names = 0;
  const std::int64_t most = random.number(1, 60);
  const std::int64_t streams = random.number(1, 3);
  for (int event = 0; event < events; ++event) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", event " + std::to_string(event));
    if (std::ssize(live) < most && random.chance(55)) {
      const std::int64_t bytes = random.bytes();
      const auto stream = static_cast<std::uint32_t>(random.number(0, streams - 1) * 1000);
      const auto block = allocator.allocate(bytes, stream);
      ASSERT_EQ(block.has_value(), plain.allocate(++names, bytes, stream));
      if (block) live.push_back({*block, names});
    } else if (random.chance(2)) {
      allocator.empty_cache();
      plain.release_all();
    } else if (!live.empty()) {
      const auto at = static_cast<std::size_t>(random.number(0, std::ssize(live) - 1));
      allocator.free(live[at].block);
      plain.free(live[at].name);
      live[at] = live.back();
      live.pop_back();
    }
    ASSERT_NO_FATAL_FAILURE(expect_sound(allocator));
    ASSERT_NO_FATAL_FAILURE(expect_same(allocator, plain));
    if (options.capacity) {
      ASSERT_LE(allocator.reserved(), options.capacity->count());
    }
  }
  for (const Live& one : live) allocator.free(one.block);
  EXPECT_EQ(allocator.allocated(), 0);
  EXPECT_EQ(allocator.requested(), 0);
  allocator.empty_cache();
  EXPECT_EQ(allocator.reserved(), 0);
  EXPECT_EQ(allocator.segments(), 0);
}

TEST(CachingAllocatorProperty, RandomSequencesKeepTheRules) {
  for (unsigned seed = 0; seed < 300 && !::testing::Test::HasFatalFailure(); ++seed) run(seed, 300);
}

TEST(CachingAllocatorProperty, ManyBlocksOfOneSizeKeepTheirOrder) {
  // One bin of the free blocks holds them all.
  CachingAllocator allocator;
  std::vector<BlockId> blocks;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) blocks.push_back(*allocator.allocate(4096));
  std::vector<BlockId> odd;
  for (std::size_t i = 1; i < blocks.size(); i += 2) odd.push_back(blocks[i]);
  std::shuffle(odd.begin(), odd.end(), std::mt19937(1));
  for (const BlockId block : odd) allocator.free(block);
  expect_sound(allocator);
  for (std::size_t i = 0; i < odd.size(); ++i) {
    const BlockId block = *allocator.allocate(4000);
    ASSERT_EQ(block, blocks[2 * i + 1]) << "the lowest address comes first";
  }
}

}  // namespace
}  // namespace gpumem::device
