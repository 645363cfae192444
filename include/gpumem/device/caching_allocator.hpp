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
// of the same size. A CUDA graph's private pool is a stream of its own. Not modelled: record_stream.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpumem/device/allocator_options.hpp"

namespace gpumem::device {

// Input: free blocks of memory.
// Output: the smallest one that is large enough, the lowest address first.
// Units: bytes, multiples of 512.
// The order (size, address) is that of PyTorch's BlockPool. The data structure is our own: bins of similar size, found
// by two levels of bitmaps as in TLSF (Masmano et al., ECRTS 2004), and within a bin a treap (Seidel and Aragon,
// Algorithmica 1996). Bins are nearly always tiny, so an operation takes a few instructions; with very many blocks of
// one size it is O(log n).

/// Names a block of memory while it is allocated. Later blocks get the names of those that are gone.
using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = UINT32_MAX;

enum class BlockState : std::uint8_t { unused, allocated, free, unmapped };

/// A piece of a segment, in a cache line of its own.
struct alignas(64) Block {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;   ///< what was asked for; of an allocated block
  std::int64_t freed_at = 0;    ///< how many searches its pool had seen; of a free block
  BlockId previous = kNoBlock;  ///< the neighbours in the segment, by address
  BlockId next = kNoBlock;      ///< of an unused one: the next unused
  BlockId smaller = kNoBlock;   ///< the subtrees of a free block's bin
  BlockId larger = kNoBlock;
  std::uint32_t pool = 0;
  BlockState state = BlockState::unused;
  bool expandable = false;  ///< lies in an expandable segment

  /// Part of a segment, not all of it.
  [[nodiscard]] bool is_split() const { return previous != kNoBlock || next != kNoBlock; }
};

/// The free blocks of one pool. It holds names only: every call is given the same array of blocks.
class FreeBlocks {
 public:
  FreeBlocks() { roots_.fill(kNoBlock); }

  void insert(Block* blocks, BlockId id) {
    const std::size_t bin = bin_of(blocks[id].size);
    if (roots_[bin] != kNoBlock) return insert_below(blocks, bin, id);
    blocks[id].smaller = kNoBlock;
    blocks[id].larger = kNoBlock;
    roots_[bin] = id;
    mark(bin);
  }

  /// Takes out a block that is in; its size and address are those it was inserted with.
  void erase(Block* blocks, BlockId id) { erase_from(blocks, bin_of(blocks[id].size), id); }

  /// The first block, by (size, address), of at least this size; among those of exactly this size, of at least this
  /// address.
  [[nodiscard]] BlockId at_least(const Block* blocks, std::int64_t size, std::int64_t address = 0) const {
    return find(blocks, size, address).id;
  }

  /// The same of this size, taken out.
  [[nodiscard]] BlockId take_at_least(Block* blocks, std::int64_t size) {
    const Found found = find(blocks, size, 0);
    if (found.id != kNoBlock) erase_from(blocks, found.bin, found.id);
    return found.id;
  }

  /// The block that follows this one by (size, address).
  [[nodiscard]] BlockId after(const Block* blocks, BlockId id) const {
    return at_least(blocks, blocks[id].size, blocks[id].address + 1);
  }

  /// The first of all.
  [[nodiscard]] BlockId first(const Block* blocks) const { return at_least(blocks, kUnit); }

 private:
  static constexpr int kUnitBits = 9;  // sizes are multiples of 512 B
  static constexpr std::int64_t kUnit = std::int64_t{1} << kUnitBits;
  static constexpr int kStepBits = 4;  // 16 bins between powers of two
  static constexpr std::size_t kSteps = std::size_t{1} << kStepBits;
  static constexpr std::size_t kBins = kSteps * 52;  // up to 2^63
  static constexpr std::size_t kWordBits = 64;

  struct Found {
    BlockId id = kNoBlock;
    std::size_t bin = 0;  ///< that it is in
  };

  [[nodiscard, gnu::always_inline]] Found find(const Block* blocks, std::int64_t size, std::int64_t address) const {
    const std::size_t bin = bin_of(size);
    BlockId best = kNoBlock;
    for (BlockId at = roots_[bin]; at != kNoBlock;) {
      const bool before = less(blocks[at], size, address);
      if (!before) best = at;
      at = before ? blocks[at].larger : blocks[at].smaller;
    }
    if (best != kNoBlock) return {best, bin};
    const std::size_t next = marked_after(bin);
    return next == kBins ? Found() : Found{first_below(blocks, roots_[next]), next};
  }

  void erase_from(Block* blocks, std::size_t bin, BlockId id) {
    const bool alone = roots_[bin] == id && blocks[id].smaller == kNoBlock && blocks[id].larger == kNoBlock;
    if (!alone) return erase_below(blocks, bin, id);
    roots_[bin] = kNoBlock;
    unmark(bin);
  }

  /// 0 to 15 units have a bin each; above, bins are 1/16 of the power of two below them wide.
  static std::size_t bin_of(std::int64_t size) {
    const auto units = static_cast<std::uint64_t>(size) >> kUnitBits;
    if (units < kSteps) return units;
    const auto shift = static_cast<std::size_t>(std::bit_width(units)) - 1 - kStepBits;
    return shift * kSteps + (units >> shift);
  }

  static bool less(const Block& block, std::int64_t size, std::int64_t address) {
    return block.size < size || (block.size == size && block.address < address);
  }

  /// The way down from `at` to where `block` is or belongs.
  static BlockId* toward(Block* blocks, BlockId at, const Block& block) {
    return less(blocks[at], block.size, block.address) ? &blocks[at].larger : &blocks[at].smaller;
  }

  /// Into a bin that holds others. Apart, so that the usual case is inlined.
  [[gnu::noinline]] void insert_below(Block* blocks, std::size_t bin, BlockId id) {
    BlockId* link = &roots_[bin];
    while (*link != kNoBlock && priority(*link) > priority(id)) link = toward(blocks, *link, blocks[id]);
    BlockId rest = *link;
    *link = id;
    // What was below goes left or right of the new block, each side in its order.
    BlockId* smaller = &blocks[id].smaller;
    BlockId* larger = &blocks[id].larger;
    while (rest != kNoBlock) {
      Block& at = blocks[rest];
      const bool before = less(at, blocks[id].size, blocks[id].address);
      BlockId*& side = before ? smaller : larger;
      *side = rest;
      side = before ? &at.larger : &at.smaller;
      rest = *side;
    }
    *smaller = kNoBlock;
    *larger = kNoBlock;
  }

  /// Out of a bin that holds others.
  [[gnu::noinline]] void erase_below(Block* blocks, std::size_t bin, BlockId id) {
    BlockId* link = &roots_[bin];
    while (*link != id) link = toward(blocks, *link, blocks[id]);
    BlockId smaller = blocks[id].smaller;
    BlockId larger = blocks[id].larger;
    while (smaller != kNoBlock && larger != kNoBlock) {
      const bool up = priority(smaller) > priority(larger);
      BlockId& top = up ? smaller : larger;
      *link = top;
      link = up ? &blocks[top].larger : &blocks[top].smaller;
      top = *link;
    }
    *link = smaller != kNoBlock ? smaller : larger;
  }

  static BlockId first_below(const Block* blocks, BlockId at) {
    while (blocks[at].smaller != kNoBlock) at = blocks[at].smaller;
    return at;
  }

  /// A treap is balanced if priorities know nothing of the order: the name, well mixed (a bijection, so that no two
  /// are alike; constants from C. Wellons' search for 32-bit hashes).
  static std::uint32_t priority(std::uint32_t id) {
    id = (id ^ (id >> 16U)) * 0x7feb352dU;
    id = (id ^ (id >> 15U)) * 0x846ca68bU;
    return id ^ (id >> 16U);
  }

  void mark(std::size_t bin) {
    marks_[bin / kWordBits] |= std::uint64_t{1} << (bin % kWordBits);
    words_ |= std::uint64_t{1} << (bin / kWordBits);
  }

  void unmark(std::size_t bin) {
    std::uint64_t& word = marks_[bin / kWordBits];
    word &= ~(std::uint64_t{1} << (bin % kWordBits));
    if (word == 0) words_ &= ~(std::uint64_t{1} << (bin / kWordBits));
  }

  /// The next bin that holds a block, or kBins.
  [[nodiscard]] std::size_t marked_after(std::size_t bin) const {
    const std::size_t word = bin / kWordBits;
    // Two shifts: one by 64 is undefined.
    const std::uint64_t here = marks_[word] >> (bin % kWordBits) >> 1U;
    if (here != 0) return bin + 1 + static_cast<std::size_t>(std::countr_zero(here));
    const std::uint64_t later = words_ >> word >> 1U;
    if (later == 0) return kBins;
    const std::size_t next = word + 1 + static_cast<std::size_t>(std::countr_zero(later));
    return next * kWordBits + static_cast<std::size_t>(std::countr_zero(marks_[next]));
  }

  std::array<BlockId, kBins> roots_;
  std::array<std::uint64_t, (kBins + kWordBits - 1) / kWordBits> marks_{};
  std::uint64_t words_ = 0;  // bit i: marks_[i] is not zero
};

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
