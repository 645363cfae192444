// Input: the requests and frees of a training job, in order.
// Output: what PyTorch's caching allocator would have allocated and reserved for them, now and at its peak.
// Units: bytes.
// Source: c10/cuda/CUDACachingAllocator.cpp, whose constants have not changed since PyTorch 1.13:
// - A request is rounded up to 512 B. Up to 1 MiB it is served from the small pool, otherwise from the large one.
// - The allocator takes the smallest free block of the request's stream and pool that is large enough, and among equals
//   the one at the lowest address. The rest of the block becomes a free block if it is at least 512 B (small pool,
//   expandable segments) or more than 1 MiB (large pool).
// - If no block is large enough, it reserves a segment: 2 MiB in the small pool; 20 MiB for less than 10 MiB; otherwise
//   the request rounded up to 2 MiB.
// - A freed block merges with its free neighbours. Segments stay reserved until a new one would pass the capacity. Then
//   all segments that are wholly free are released; if that is not enough, memory has run out.
// Assumption: a later segment has a higher address, as cudaMalloc mostly does it. This only decides between free blocks
// of the same size. Not modelled: private pools (CUDA graphs), record_stream.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/free_blocks.hpp"

namespace gpumem::device {

/// A block as a memory viewer shows it.
struct BlockView {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;  ///< of an allocated block
  BlockState state = BlockState::free;
};

/// A segment and its blocks, by address.
struct SegmentView {
  std::uint32_t stream = 0;
  bool small = false;
  bool expandable = false;
  std::vector<BlockView> blocks;
};

/// Thread safety: one thread at a time.
class CachingAllocator {
 public:
  /// `reused` is what another one left (leave_memory), so that this one does not have to ask the machine for it.
  explicit CachingAllocator(const AllocatorOptions& options = {}, std::vector<Block> reused = {});

  /// A block of at least this many bytes. For 0 bytes or less kNoBlock, which takes no memory (PyTorch returns a null
  /// pointer). Nothing: out of memory; cached segments have been released, all else is as before.
  [[nodiscard]] std::optional<BlockId> allocate(std::int64_t bytes, std::uint32_t stream = 0);

  /// allocate() and free() at once: the bytes of the block that is taken for the moment. Nothing: out of memory.
  [[nodiscard]] std::optional<std::int64_t> allocate_and_free(std::int64_t bytes, std::uint32_t stream = 0);

  /// Gives an allocated block back to the cache; kNoBlock, and what is not allocated, are ignored.
  void free(BlockId block);

  /// torch.cuda.empty_cache(): releases every segment, or page of an expandable one, that is wholly free.
  void empty_cache();

  /// torch.cuda.reset_peak_memory_stats(): the peaks are what is held now.
  void reset_peaks();

  /// Bytes in allocated blocks: torch.cuda.memory_allocated().
  [[nodiscard]] std::int64_t allocated() const { return allocated_.now; }
  /// Bytes in segments: torch.cuda.memory_reserved().
  [[nodiscard]] std::int64_t reserved() const { return reserved_.now; }
  /// Bytes that were asked for: "requested_bytes.all.current" of torch.cuda.memory_stats().
  [[nodiscard]] std::int64_t requested() const { return requested_.now; }
  [[nodiscard]] std::int64_t peak_allocated() const { return allocated_.peak; }
  [[nodiscard]] std::int64_t peak_reserved() const { return reserved_.peak; }
  [[nodiscard]] std::int64_t peak_requested() const { return requested_.peak; }
  /// Segments that hold memory; an expandable one counts once however many pages it has.
  [[nodiscard]] std::int64_t segments() const { return segments_.now; }
  [[nodiscard]] std::int64_t peak_segments() const { return segments_.peak; }
  /// How often all cached segments were released to make room: "num_alloc_retries" of torch.cuda.memory_stats().
  [[nodiscard]] std::int64_t retries() const { return retries_; }

  /// Bytes of an allocated block, 0 for kNoBlock.
  [[nodiscard]] std::int64_t size_of(BlockId block) const { return block == kNoBlock ? 0 : blocks_[block].size; }

  /// The memory of its own books, for another allocator; this one is of no use then.
  [[nodiscard]] std::vector<Block> leave_memory() && { return std::move(blocks_); }

  /// All segments by address; for timelines and tests.
  [[nodiscard]] std::vector<SegmentView> snapshot() const;

 private:
  struct Pool {
    FreeBlocks free;
    std::vector<BlockId> unmapped;  ///< of expandable segments, by address
    std::uint32_t stream = 0;
    bool small = false;
  };

  struct Level {
    std::int64_t now = 0;
    std::int64_t peak = 0;
    void raise(std::int64_t by) {
      now += by;
      peak = now > peak ? now : peak;
    }
    void lower(std::int64_t by) { now -= by; }
    /// Up and down again.
    void touch(std::int64_t by) { peak = now + by > peak ? now + by : peak; }
  };

  [[nodiscard]] std::int64_t rounded(std::int64_t bytes) const;
  [[nodiscard]] std::uint32_t pool_of(std::uint32_t stream, bool small);
  [[nodiscard]] std::uint32_t new_pools(std::uint32_t stream);
  [[nodiscard]] BlockId new_block(std::uint32_t pool, std::int64_t address, std::int64_t size);
  void forget(BlockId id);
  void put_free(Pool& pool, BlockId id);
  void put_free(BlockId id);
  void take_out(BlockId id);
  [[nodiscard]] BlockId split_off(BlockId id, std::int64_t size);
  void absorb_next(BlockId id);
  BlockId free_merged(BlockId id);

  [[nodiscard]] BlockId find_free(Pool& pool, std::int64_t size);
  [[nodiscard]] BlockId find_free_as_optioned(Pool& pool, std::int64_t size);
  [[nodiscard]] BlockId best_expandable(const Pool& pool, BlockId id) const;
  [[nodiscard]] bool splits(const Pool& pool, const Block& block, std::int64_t size) const;

  [[nodiscard]] BlockId reserve(std::uint32_t pool, std::int64_t size);
  [[nodiscard]] BlockId try_reserve(std::uint32_t pool, std::int64_t size);
  [[nodiscard]] BlockId new_segment(std::uint32_t pool, std::int64_t size);
  void release_segment(BlockId id);
  [[nodiscard]] std::vector<BlockId> free_from(const Pool& pool, std::int64_t size) const;
  [[nodiscard]] bool release_oversize(std::uint32_t pool, std::int64_t size);
  void collect_garbage();

  [[nodiscard]] BlockId grow(std::uint32_t pool, std::int64_t size);
  [[nodiscard]] BlockId room_to_grow(std::uint32_t pool, std::int64_t size);
  [[nodiscard]] bool has_room(BlockId from, std::int64_t size) const;
  [[nodiscard]] BlockId map(BlockId id, std::int64_t size);
  void unmap(BlockId id);
  [[nodiscard]] BlockId merge_unmapped(BlockId id);
  void list_unmapped(BlockId id);
  void unlist_unmapped(BlockId id);

  AllocatorOptions options_;
  std::int64_t capacity_ = 0;
  std::int64_t max_split_ = INT64_MAX;
  bool rounds_up_ = false;
  bool collects_ = false;
  bool plain_ = true;  ///< no option changes which free block is taken

  std::vector<Block> blocks_;  // those from made_ on were never used
  BlockId made_ = 0;
  BlockId unused_ = kNoBlock;  // the first of the chain of unused blocks
  std::vector<Pool> pools_;    // small and large of stream 0, then of each other stream
  std::unordered_map<std::uint32_t, std::uint32_t> pools_of_streams_;

  std::int64_t next_address_ = 0;
  std::int64_t large_searches_ = 0;  // while garbage is collected
  Level allocated_;
  Level reserved_;
  Level requested_;
  Level segments_;
  std::int64_t retries_ = 0;
};

}  // namespace gpumem::device
