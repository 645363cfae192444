// Input: free blocks of memory.
// Output: the smallest one that is large enough, the lowest address first.
// Units: bytes, multiples of 512.
// The order (size, address) is that of PyTorch's BlockPool. The data structure is our own: bins of similar size, found
// by two levels of bitmaps as in TLSF (Masmano et al., ECRTS 2004), and within a bin a treap (Seidel and Aragon,
// Algorithmica 1996). Bins are nearly always tiny, so an operation takes a few instructions; with very many blocks of
// one size it is O(log n).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gpumem::device {

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

}  // namespace gpumem::device
