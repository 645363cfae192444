#pragma once

#include "gpumem/device/caching_allocator.hpp"

#include <algorithm>
#include <span>

namespace gpumem::device {

namespace caching_allocator_detail {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kSmallestBlock = 512;
inline constexpr std::int64_t kLargestSmall = kMiB;       // requests of the small pool
inline constexpr std::int64_t kSmallSegment = 2 * kMiB;   // also a page of expandable segments
inline constexpr std::int64_t kLargeSegment = 20 * kMiB;  // also a page of expandable segments
inline constexpr std::int64_t kSmallestOwn = 10 * kMiB;   // requests with a segment of their own
inline constexpr std::int64_t kSegmentRounding = 2 * kMiB;

// Far beyond any machine, and small enough that sums of a few sizes fit 64 bits.
inline constexpr std::int64_t kLargestCapacity = std::int64_t{1} << 56;
// The range of an expandable segment where no capacity is given.
inline constexpr std::int64_t kUnlimitedRange = std::int64_t{1} << 46;
// Any start will do but null.
inline constexpr std::int64_t kFirstAddress = std::int64_t{1} << 40;
// Room at first; it doubles.
inline constexpr std::size_t kFewestBlocks = 64;

inline std::int64_t rounded_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

inline std::int64_t segment_size(std::int64_t size) {
  if (size <= kLargestSmall) return kSmallSegment;
  if (size < kSmallestOwn) return kLargeSegment;
  return rounded_up(size, kSegmentRounding);
}

inline std::int64_t page_size(bool small) { return small ? kSmallSegment : kLargeSegment; }

/// Which entry of roundup_power2_divisions a size has: the first below 2 MiB, the last from 32 GiB on.
inline std::size_t division_index(std::int64_t size) {
  const auto power = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size))) - 1;
  return static_cast<std::size_t>(std::clamp(power - 20, 0, 15));
}

inline std::int64_t rounded_to_division(std::int64_t size, std::int64_t divisions) {
  const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
  return floor == size ? size : rounded_up(size, floor / divisions);
}

}  // namespace caching_allocator_detail

GPUMEM_INLINE CachingAllocator::CachingAllocator(const AllocatorOptions& options, std::vector<Block> reused)
    : options_(options), blocks_(std::move(reused)) {
  namespace detail = caching_allocator_detail;
  blocks_.resize(std::max(blocks_.size(), detail::kFewestBlocks));
  capacity_ = std::min(options.capacity ? options.capacity->count() : INT64_MAX, detail::kLargestCapacity);
  if (options.max_split_size) max_split_ = options.max_split_size->count();
  rounds_up_ = std::any_of(options.roundup_power2_divisions.begin(), options.roundup_power2_divisions.end(),
                           [](std::int32_t divisions) { return divisions > 1; });
  collects_ = options.capacity && options.garbage_collection_threshold > 0.0;
  plain_ = !collects_ && !options.expandable_segments && !options.max_split_size;
  next_address_ = detail::kFirstAddress;
  (void)new_pools(0);
}

// --- Blocks -----------------------------------------------------------------------------------------------------

inline BlockId CachingAllocator::new_block(std::uint32_t pool, std::int64_t address, std::int64_t size) {
  BlockId id = unused_;
  if (id != kNoBlock) {
    unused_ = blocks_[id].next;
  } else {
    id = made_++;
    if (id == blocks_.size()) blocks_.resize(2 * blocks_.size());
  }
  Block& block = blocks_[id];
  block.address = address;
  block.size = size;
  block.previous = kNoBlock;
  block.next = kNoBlock;
  block.pool = pool;
  block.state = BlockState::unused;
  block.expandable = options_.expandable_segments;
  return id;
}

inline void CachingAllocator::forget(BlockId id) {
  blocks_[id].state = BlockState::unused;
  blocks_[id].next = unused_;
  unused_ = id;
}

inline void CachingAllocator::put_free(Pool& pool, BlockId id) {
  Block& block = blocks_[id];
  block.state = BlockState::free;
  block.freed_at = large_searches_;
  pool.free.insert(blocks_.data(), id);
}
inline void CachingAllocator::put_free(BlockId id) { put_free(pools_[blocks_[id].pool], id); }

inline void CachingAllocator::take_out(BlockId id) { pools_[blocks_[id].pool].free.erase(blocks_.data(), id); }

/// Cuts a block: it keeps its first `size` bytes; the rest is a block without a state.
inline BlockId CachingAllocator::split_off(BlockId id, std::int64_t size) {
  const BlockId rest = new_block(blocks_[id].pool, blocks_[id].address + size, blocks_[id].size - size);
  Block& block = blocks_[id];
  block.size = size;
  blocks_[rest].previous = id;
  blocks_[rest].next = block.next;
  if (block.next != kNoBlock) blocks_[block.next].previous = rest;
  block.next = rest;
  return rest;
}

inline void CachingAllocator::absorb_next(BlockId id) {
  Block& block = blocks_[id];
  const BlockId next = block.next;
  block.size += blocks_[next].size;
  block.next = blocks_[next].next;
  if (block.next != kNoBlock) blocks_[block.next].previous = id;
  forget(next);
}

/// Merges a block that is in no list with its free neighbours and puts it among the free blocks.
inline BlockId CachingAllocator::free_merged(BlockId id) {
  Pool& pool = pools_[blocks_[id].pool];  // its neighbours' too
  const BlockId next = blocks_[id].next;
  if (next != kNoBlock && blocks_[next].state == BlockState::free) {
    pool.free.erase(blocks_.data(), next);
    absorb_next(id);
  }
  const BlockId previous = blocks_[id].previous;
  if (previous != kNoBlock && blocks_[previous].state == BlockState::free) {
    pool.free.erase(blocks_.data(), previous);
    absorb_next(previous);
    id = previous;
  }
  put_free(pool, id);
  return id;
}

// --- Requests and frees -----------------------------------------------------------------------------------------

inline std::int64_t CachingAllocator::rounded(std::int64_t bytes) const {
  namespace detail = caching_allocator_detail;
  if (rounds_up_) {
    const std::int64_t divisions = options_.roundup_power2_divisions[detail::division_index(bytes)];
    if (divisions > 1 && bytes > detail::kSmallestBlock * divisions) {
      return detail::rounded_to_division(bytes, divisions);
    }
  }
  return (bytes + detail::kSmallestBlock - 1) & -detail::kSmallestBlock;  // a power of two: no division
}

inline std::uint32_t CachingAllocator::pool_of(std::uint32_t stream, bool small) {
  if (stream == 0) return small ? 0 : 1;
  const auto known = pools_of_streams_.find(stream);
  const std::uint32_t first = known != pools_of_streams_.end() ? known->second : new_pools(stream);
  return small ? first : first + 1;
}

GPUMEM_INLINE std::uint32_t CachingAllocator::new_pools(std::uint32_t stream) {
  const auto first = static_cast<std::uint32_t>(pools_.size());
  for (const bool small : {true, false}) {
    Pool& pool = pools_.emplace_back();
    pool.stream = stream;
    pool.small = small;
  }
  if (stream != 0) pools_of_streams_.emplace(stream, first);
  return first;
}

/// Takes the best free block out, or none.
inline BlockId CachingAllocator::find_free(Pool& pool, std::int64_t size) {
  return plain_ ? pool.free.take_at_least(blocks_.data(), size) : find_free_as_optioned(pool, size);
}

GPUMEM_INLINE BlockId CachingAllocator::find_free_as_optioned(Pool& pool, std::int64_t size) {
  if (collects_ && !pool.small) ++large_searches_;
  BlockId id = pool.free.at_least(blocks_.data(), size);
  if (id == kNoBlock) return kNoBlock;
  if (options_.expandable_segments) id = best_expandable(pool, id);
  const std::int64_t found = blocks_[id].size;
  const bool oversize = size >= max_split_;
  if (!oversize && found >= max_split_) return kNoBlock;
  if (oversize && found >= size + options_.max_non_split_rounding.count()) return kNoBlock;
  take_out(id);
  return id;
}

/// A free block at the growing end of a segment counts with all that it can grow to, so that the end is used last.
GPUMEM_INLINE BlockId CachingAllocator::best_expandable(const Pool& pool, BlockId id) const {
  const auto growable = [&](BlockId block) {
    const BlockId next = blocks_[block].next;
    const bool grows = next != kNoBlock && blocks_[next].state == BlockState::unmapped;
    return blocks_[block].size + (grows ? blocks_[next].size : 0);
  };
  BlockId next = pool.free.after(blocks_.data(), id);
  while (next != kNoBlock && growable(next) < growable(id)) {
    id = next;
    next = pool.free.after(blocks_.data(), id);
  }
  return id;
}

/// Whether a block that serves a request of this size is cut.
inline bool CachingAllocator::splits(const Pool& pool, const Block& block, std::int64_t size) const {
  namespace detail = caching_allocator_detail;
  const std::int64_t rest = block.size - size;
  const bool fine = pool.small || options_.expandable_segments;
  return fine ? rest >= detail::kSmallestBlock : size < max_split_ && rest > detail::kLargestSmall;
}

GPUMEM_INLINE std::optional<BlockId> CachingAllocator::allocate(std::int64_t bytes, std::uint32_t stream) {
  namespace detail = caching_allocator_detail;
  if (bytes <= 0) return kNoBlock;
  if (bytes > detail::kLargestCapacity) return std::nullopt;
  const std::int64_t size = rounded(bytes);
  const std::uint32_t index = pool_of(stream, size <= detail::kLargestSmall);
  Pool& pool = pools_[index];
  BlockId id = find_free(pool, size);
  if (id == kNoBlock) id = reserve(index, size);
  if (id == kNoBlock) return std::nullopt;
  if (splits(pool, blocks_[id], size)) put_free(pool, split_off(id, size));  // what it has too much
  Block& block = blocks_[id];
  block.state = BlockState::allocated;
  block.requested = bytes;
  allocated_.raise(block.size);
  requested_.raise(bytes);
  return id;
}

GPUMEM_INLINE std::optional<std::int64_t> CachingAllocator::allocate_and_free(std::int64_t bytes,
                                                                              std::uint32_t stream) {
  namespace detail = caching_allocator_detail;
  if (plain_ && bytes > 0 && bytes <= detail::kLargestCapacity) {
    // A free block that is cut and made whole again is as it was: only the peaks tell.
    const std::int64_t size = rounded(bytes);
    const Pool& pool = pools_[pool_of(stream, size <= detail::kLargestSmall)];
    const BlockId id = pool.free.at_least(blocks_.data(), size);
    if (id != kNoBlock) {
      const std::int64_t taken = splits(pool, blocks_[id], size) ? size : blocks_[id].size;
      allocated_.touch(taken);
      requested_.touch(bytes);
      return taken;
    }
  }
  const std::optional<BlockId> id = allocate(bytes, stream);
  if (!id) return std::nullopt;
  const std::int64_t taken = size_of(*id);
  free(*id);
  return taken;
}

GPUMEM_INLINE void CachingAllocator::free(BlockId id) {
  if (id >= made_ || blocks_[id].state != BlockState::allocated) return;
  allocated_.lower(blocks_[id].size);
  requested_.lower(blocks_[id].requested);
  (void)free_merged(id);
}

// --- Segments ---------------------------------------------------------------------------------------------------

/// A block from new memory; where there is none left, from what the cache gives back.
GPUMEM_INLINE BlockId CachingAllocator::reserve(std::uint32_t pool, std::int64_t size) {
  if (collects_) collect_garbage();
  BlockId id = try_reserve(pool, size);
  if (id == kNoBlock && release_oversize(pool, size)) id = try_reserve(pool, size);
  if (id != kNoBlock) return id;
  empty_cache();
  ++retries_;
  return try_reserve(pool, size);
}

GPUMEM_INLINE BlockId CachingAllocator::try_reserve(std::uint32_t pool, std::int64_t size) {
  return options_.expandable_segments ? grow(pool, size) : new_segment(pool, size);
}

GPUMEM_INLINE BlockId CachingAllocator::new_segment(std::uint32_t pool, std::int64_t size) {
  const std::int64_t bytes = caching_allocator_detail::segment_size(size);
  if (bytes > capacity_ - reserved_.now || bytes > INT64_MAX - next_address_) return kNoBlock;
  const BlockId id = new_block(pool, next_address_, bytes);
  next_address_ += bytes;
  reserved_.raise(bytes);
  segments_.raise(1);
  return id;
}

GPUMEM_INLINE void CachingAllocator::release_segment(BlockId id) {
  take_out(id);
  reserved_.lower(blocks_[id].size);
  segments_.lower(1);
  forget(id);
}

GPUMEM_INLINE std::vector<BlockId> CachingAllocator::free_from(const Pool& pool, std::int64_t size) const {
  std::vector<BlockId> all;
  for (BlockId id = pool.free.at_least(blocks_.data(), size); id != kNoBlock;
       id = pool.free.after(blocks_.data(), id)) {
    all.push_back(id);
  }
  return all;
}

GPUMEM_INLINE void CachingAllocator::empty_cache() {
  for (const Pool& pool : pools_) {
    for (const BlockId id : free_from(pool, caching_allocator_detail::kSmallestBlock)) {
      if (blocks_[id].expandable) {
        unmap(id);
      } else if (!blocks_[id].is_split()) {
        release_segment(id);
      }
    }
  }
}

/// With max_split_size, oversize segments are the first to go, and only as many as it takes: one that is as large as
/// the request, or else several from the largest down.
GPUMEM_INLINE bool CachingAllocator::release_oversize(std::uint32_t pool, std::int64_t size) {
  if (!options_.max_split_size || options_.expandable_segments) return false;
  const std::int64_t wanted = std::max(size, max_split_);
  const BlockId enough = pools_[pool].free.at_least(blocks_.data(), wanted);
  if (enough != kNoBlock && !blocks_[enough].is_split()) {
    release_segment(enough);
    return true;
  }
  const std::vector<BlockId> oversize = free_from(pools_[pool], max_split_);
  std::int64_t released = 0;
  for (auto id = oversize.rbegin(); id != oversize.rend() && released < wanted; ++id) {
    if (blocks_[*id].is_split()) continue;
    released += blocks_[*id].size;
    release_segment(*id);
  }
  return released >= wanted;
}

/// Releases large segments that were not used for longer than the average of them, again and again until reserved
/// memory is below the threshold. Age is counted in searches of the large pools.
GPUMEM_INLINE void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(options_.garbage_collection_threshold *
                                                   static_cast<double>(options_.capacity->count()));
  std::vector<BlockId> whole;
  double total_age = 0.0;
  const auto age = [&](BlockId id) { return static_cast<double>(large_searches_ - blocks_[id].freed_at); };
  if (reserved_.now <= threshold || options_.expandable_segments) return;
  for (const Pool& pool : pools_) {
    if (pool.small) continue;
    for (const BlockId id : free_from(pool, caching_allocator_detail::kSmallestBlock)) {
      if (blocks_[id].is_split()) continue;
      whole.push_back(id);
      total_age += age(id);
    }
  }
  while (reserved_.now > threshold && !whole.empty()) {
    const double average = total_age / static_cast<double>(whole.size());
    const auto old = std::stable_partition(whole.begin(), whole.end(), [&](BlockId id) { return age(id) < average; });
    if (old == whole.end()) return;  // rounding of the average only
    for (auto id = old; id != whole.end(); ++id) {
      total_age -= age(*id);
      release_segment(*id);
    }
    whole.erase(old, whole.end());
  }
}

// --- Expandable segments ----------------------------------------------------------------------------------------
// A segment is a range of addresses, mapped page by page as it grows: 2 MiB a page in the small pool, 20 MiB in the
// large one. What is not mapped is one unmapped block (or several, after pages in the middle were released).

/// A block of at least `size` bytes that is in no list, from the lowest place where pages can be mapped.
GPUMEM_INLINE BlockId CachingAllocator::grow(std::uint32_t pool, std::int64_t size) {
  BlockId id = room_to_grow(pool, size);
  if (id == kNoBlock) return kNoBlock;
  if (blocks_[id].state == BlockState::unmapped) id = map(id, std::min(size, blocks_[id].size));
  while (id != kNoBlock && blocks_[id].size < size) {
    const BlockId next = blocks_[id].next;
    id = map(next, std::min(size - blocks_[id].size, blocks_[next].size));
  }
  if (id != kNoBlock) take_out(id);
  return id;
}

/// Where the request would begin: a free block before unmapped pages, or those pages.
GPUMEM_INLINE BlockId CachingAllocator::room_to_grow(std::uint32_t pool, std::int64_t size) {
  namespace detail = caching_allocator_detail;
  for (const BlockId unmapped : pools_[pool].unmapped) {
    const BlockId previous = blocks_[unmapped].previous;
    const bool after_free = previous != kNoBlock && blocks_[previous].state == BlockState::free;
    const BlockId from = after_free ? previous : unmapped;
    if (has_room(from, size)) return from;
  }
  // PyTorch takes addresses for 1 1/8 of the device's memory.
  const std::int64_t wanted = options_.capacity ? capacity_ + capacity_ / 8 : detail::kUnlimitedRange;
  const std::int64_t page = detail::page_size(pools_[pool].small);
  const std::int64_t range = detail::rounded_up(wanted, page);
  if (range < size || range > INT64_MAX - next_address_ - page) return kNoBlock;
  const BlockId id = new_block(pool, detail::rounded_up(next_address_, page), range);
  next_address_ = blocks_[id].address + range;
  list_unmapped(id);
  return id;
}

GPUMEM_INLINE bool CachingAllocator::has_room(BlockId from, std::int64_t size) const {
  std::int64_t bytes = 0;
  for (BlockId id = from; id != kNoBlock && blocks_[id].state != BlockState::allocated && bytes < size;) {
    bytes += blocks_[id].size;
    id = blocks_[id].next;
  }
  return bytes >= size;
}

/// Maps the first pages of an unmapped block; leaves the free block that they are in then, or none if the capacity
/// does not hold them.
GPUMEM_INLINE BlockId CachingAllocator::map(BlockId id, std::int64_t size) {
  namespace detail = caching_allocator_detail;
  const std::int64_t bytes = detail::rounded_up(size, detail::page_size(pools_[blocks_[id].pool].small));
  if (bytes > capacity_ - reserved_.now) return kNoBlock;
  if (!blocks_[id].is_split()) segments_.raise(1);  // its first pages
  unlist_unmapped(id);
  if (bytes < blocks_[id].size) list_unmapped(split_off(id, bytes));
  reserved_.raise(bytes);
  return free_merged(id);
}

/// Releases the pages that lie wholly in a free block. A segment without pages is gone.
GPUMEM_INLINE void CachingAllocator::unmap(BlockId id) {
  namespace detail = caching_allocator_detail;
  const std::int64_t page = detail::page_size(pools_[blocks_[id].pool].small);
  const std::int64_t begin = detail::rounded_up(blocks_[id].address, page);
  const std::int64_t end = (blocks_[id].address + blocks_[id].size) / page * page;
  if (begin >= end) return;
  take_out(id);
  if (end < blocks_[id].address + blocks_[id].size) put_free(split_off(id, end - blocks_[id].address));
  if (begin > blocks_[id].address) {
    const BlockId pages = split_off(id, begin - blocks_[id].address);
    put_free(id);
    id = pages;
  }
  reserved_.lower(end - begin);
  id = merge_unmapped(id);
  if (blocks_[id].is_split()) return list_unmapped(id);
  segments_.lower(1);
  forget(id);
}

GPUMEM_INLINE BlockId CachingAllocator::merge_unmapped(BlockId id) {
  const BlockId next = blocks_[id].next;
  if (next != kNoBlock && blocks_[next].state == BlockState::unmapped) {
    unlist_unmapped(next);
    absorb_next(id);
  }
  const BlockId previous = blocks_[id].previous;
  if (previous == kNoBlock || blocks_[previous].state != BlockState::unmapped) return id;
  unlist_unmapped(previous);
  absorb_next(previous);
  return previous;
}

GPUMEM_INLINE void CachingAllocator::list_unmapped(BlockId id) {
  blocks_[id].state = BlockState::unmapped;
  std::vector<BlockId>& list = pools_[blocks_[id].pool].unmapped;
  const auto before = [&](BlockId left, BlockId right) { return blocks_[left].address < blocks_[right].address; };
  list.insert(std::lower_bound(list.begin(), list.end(), id, before), id);
}

GPUMEM_INLINE void CachingAllocator::unlist_unmapped(BlockId id) {
  std::vector<BlockId>& list = pools_[blocks_[id].pool].unmapped;
  list.erase(std::find(list.begin(), list.end(), id));
}

// --- Inspection -------------------------------------------------------------------------------------------------

GPUMEM_INLINE void CachingAllocator::reset_peaks() {
  for (Level* level : {&allocated_, &reserved_, &requested_, &segments_}) level->peak = level->now;
}

GPUMEM_INLINE std::vector<SegmentView> CachingAllocator::snapshot() const {
  std::vector<SegmentView> all;
  for (const Block& first : std::span(blocks_).first(made_)) {
    if (first.state == BlockState::unused || first.previous != kNoBlock) continue;
    SegmentView segment;
    segment.stream = pools_[first.pool].stream;
    segment.small = pools_[first.pool].small;
    segment.expandable = first.expandable;
    for (const Block* block = &first;; block = &blocks_[block->next]) {
      const bool allocated = block->state == BlockState::allocated;
      segment.blocks.push_back({block->address, block->size, allocated ? block->requested : 0, block->state});
      if (block->next == kNoBlock) break;
    }
    all.push_back(std::move(segment));
  }
  std::sort(all.begin(), all.end(), [](const SegmentView& left, const SegmentView& right) {
    return left.blocks.front().address < right.blocks.front().address;
  });
  return all;
}

}  // namespace gpumem::device
